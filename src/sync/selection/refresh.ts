import { Failure, failureCode } from "../../model/failure.ts";
import { hasHistory, type Stream, streamTable } from "../../model/streams.ts";
import { MINUTE_MS } from "../../service/limits.ts";
import { isSuspiciouslyShort, readRanking } from "../../warehouse/lookups/lookup-queries.ts";
import {
  classifyError,
  ensureServiceTime,
  isInvalidResponse,
  type Problem,
  retryUntilDone,
  type SyncContext,
  serviceNow,
  storeClockSkew,
  toProblem,
} from "../context/context.ts";
import { ProblemLog } from "../context/problem-log.ts";
import {
  fetchLiquidIndices,
  fetchLiquidNames,
  type LiquidIndex,
  liquidCandidates,
} from "../fetch/liquid-indices.ts";
import { type LookupStream, refreshLookup, wholeLookups } from "../fetch/lookups.ts";
import { fetchMarketCaps } from "../fetch/record-snapshot.ts";
import {
  findNotices,
  neededLists,
  needsLiquidIndices,
  needsRanking,
  noticesToProblems,
  type SelectorNotice,
} from "./selectors.ts";
import { type Directory, readStoredDirectory, resolveTargets, type StreamTargets } from "./targets.ts";

/**
 * Declares the targets from the stored lookups, so that the live feed can start before the lookups are refreshed. Exchange
 * tickers missed until then would be lost. Returns undefined if the stored lookups are not enough.
 */
export async function selectFromWarehouse(context: SyncContext, wsUrl: string) {
  const { client, reader, settings, signal } = context;
  const { marketCap } = settings.streams;
  const directory: Directory = {
    ...readStoredDirectory(reader),
    LX: liquidCandidates(settings.lxIndexIds, reader, []),
    // Without polled market caps the stored ranking is old: it could deselect series that a newer one had selected.
    ranking: marketCap === false ? undefined : readRanking(reader),
  };
  const hasEnough =
    directory.GWA.length > 0 && neededLists(settings).every((list) => directory[list].length > 0);
  if (!hasEnough) return undefined;
  // The live feed needs a token anyway, and the token response carries the service's time.
  if (client.server.now() === undefined)
    await client
      .tokensOf(wsUrl)
      .get(signal)
      .catch(() => {});
  await ensureServiceTime(context);
  await storeClockSkew(context);
  await storeTargets(context, directory);
  return directory;
}

const LIQUID_INDEX_COUNT = 3;
/** What a problem of fetching the liquid indices is about. */
const LIQUID_INDICES = "LX";

export interface SelectionResult {
  readonly directory: Directory;
  readonly targets: readonly StreamTargets[];
  readonly problems: readonly Problem[];
}

/**
 * Refreshes the lookups and the ranking, and declares the targets that the settings select. A ranking that fails or is slow
 * is fetched in the background. `shouldStoreMarketCaps`: otherwise only the ranking is used. `onProblems`: called with the problems of
 * requests that are still being retried, whenever they change.
 */
export async function refreshSelection(
  context: SyncContext,
  shouldStoreMarketCaps: boolean,
  onProblems: (problems: readonly Problem[]) => void = () => {},
) {
  const { client, clock, reader, settings, signal, stats, log } = context;
  const problems: Problem[] = [];
  const pendingProblems = new ProblemLog(onProblems);
  /** Something failed that may work soon: retry before the regular interval. */
  let shouldRetrySoon = false;
  /** Returns undefined and adds a problem to the report if the work fails for good. */
  const attempt = async <T>(stream: Stream, what: string | undefined, work: () => Promise<T>) => {
    const onRetry = (error: unknown) => pendingProblems.report(stream, toProblem(stream, what, error));
    const cancelWarning = clock.after(MINUTE_MS, () =>
      pendingProblems.report(stream, { stream, code: "unanswered", message: UNANSWERED_MESSAGE }),
    );
    try {
      return await retryUntilDone(context, work, onRetry);
    } catch (error) {
      const errorClass = classifyError(error, stats.successCount);
      if (errorClass === "stop") throw error;
      shouldRetrySoon ||=
        errorClass === "retry" || ["endpoint_failing", "no_list"].includes(failureCode(error));
      problems.push(toProblem(stream, what, error));
      return undefined;
    } finally {
      cancelWarning();
      pendingProblems.clear(stream);
    }
  };

  if (settings.streams.lookups !== false) {
    await Promise.all(
      wholeLookups.map(async (stream) => {
        const commit = await attempt(stream, undefined, () => refreshLookup(context, stream));
        if (commit?.incident) problems.push(shrunkenLookupProblem(stream, commit.incident));
      }),
    );
  }
  // Without any successful lookup the service's time is still unknown, and the targets depend on it.
  await ensureServiceTime(context);
  await storeClockSkew(context);

  const storedIds = readRanking(reader);
  const { marketCap } = settings.streams;
  const cadenceSeconds = shouldStoreMarketCaps && marketCap !== false ? marketCap.every : undefined;
  const rankingFetch =
    cadenceSeconds !== undefined || needsRanking(settings)
      ? startRankingFetch(context, cadenceSeconds)
      : undefined;
  const fetchedIds = await rankingFetch?.waitForFirstTry().catch((error: unknown) => {
    const errorClass = classifyError(error, stats.successCount);
    if (errorClass === "stop" || !(error instanceof Failure)) throw error;
    shouldRetrySoon ||= errorClass === "retry" || error.code === "no_list";
    return error;
  });
  /** Set if the ranking is still being fetched; the stored one was used so far. The caller waits for it or cancels it. */
  const pendingRanking = fetchedIds === undefined ? rankingFetch : undefined;
  shouldRetrySoon ||= pendingRanking !== undefined;
  const areLiquidIdsConfigured = Object.keys(settings.lxIndexIds).length >= LIQUID_INDEX_COUNT;
  const liquidIndices =
    needsLiquidIndices(settings) && !areLiquidIdsConfigured
      ? await attempt("index_ticks", LIQUID_INDICES, () =>
          fetchLiquidIndices(client, serviceNow(context), signal),
        )
      : [];
  const lookups = readStoredDirectory(reader);
  const matchedNames = await matchNames(context, liquidIndices ?? [], lookups.GWA);
  const liquidIds = (liquidIndices ?? []).map(({ id }) => id);

  const select = async (ranking: readonly string[] | Failure | undefined): Promise<SelectionResult> => {
    const rankedIds = ranking instanceof Failure || ranking === undefined ? [] : ranking;
    const isShort = storedIds !== undefined && isSuspiciouslyShort(rankedIds.length, storedIds.length);
    const directory: Directory = {
      ...lookups,
      LX: liquidCandidates(settings.lxIndexIds, reader, liquidIds, matchedNames),
      matchedNames,
      // A ranking that lost most of its assets would deselect many series.
      ranking: isShort ? storedIds : rankedIds.length > 0 ? rankedIds : undefined,
    };
    const targets = await storeTargets(context, directory);
    const notices = findNotices(settings, directory).filter(({ stream }) => hasHistory(stream));
    for (const { kind, setting, names } of notices)
      if (kind === "shared") log.warn({ setting, names }, "ambiguous names, all matches selected");
    const unexplained = notices.filter((notice) => !isExplained(notice, problems));
    const selectorProblems = noticesToProblems(unexplained, directory.LX);
    return {
      directory,
      targets,
      problems: [...problems, ...rankingProblems(ranking, storedIds), ...selectorProblems],
    };
  };
  // `selectAgain` declares the targets again, with the ranking that came late or the reason why there is none.
  const selected = await select(fetchedIds ?? pendingRanking?.failure);
  return { ...selected, shouldRetrySoon, pendingRanking, selectAgain: select };
}

function rankingProblems(
  ranking: readonly string[] | Failure | undefined,
  storedIds: readonly string[] | undefined,
): Problem[] {
  if (ranking instanceof Failure) return [toProblem("market_caps", undefined, ranking)];
  if (!ranking || !storedIds || !isSuspiciouslyShort(ranking.length, storedIds.length)) return [];
  const message = `/market-cap ranks only ${ranking.length} of ${storedIds.length} known assets: the stored ranking is used until they are back`;
  return [{ stream: "market_caps", code: "shrunken_list", message }];
}

/**
 * Concludes the names of liquid indices that neither the settings nor the live feed have named. Without the prices they
 * keep their ids until the next refresh.
 */
async function matchNames(
  { client, reader, settings, signal, log }: SyncContext,
  indices: readonly LiquidIndex[],
  assets: Directory["GWA"],
): Promise<ReadonlyMap<string, string>> {
  const ids = indices.map(({ id }) => id);
  const known = liquidCandidates(settings.lxIndexIds, reader, ids).filter(({ labels }) => labels.length > 0);
  const unnamed = indices.filter(({ id }) => !known.some((candidate) => candidate.id === id));
  if (unnamed.length === 0) return new Map();
  const knownNames = new Set(known.flatMap(({ labels }) => labels));
  try {
    const cadenceSeconds = settings.refreshSeconds;
    const options = { indices: unnamed, knownNames, assets, cadenceSeconds, signal };
    const names = await fetchLiquidNames(client, options);
    for (const [indexId, name] of names) log.info({ indexId, name }, "liquid index named by its price");
    return names;
  } catch (error) {
    if (signal.aborted) throw error;
    log.warn({ code: failureCode(error) }, "naming liquid indices failed, will retry");
    return new Map();
  }
}

/** Declares the targets that the settings select; targets that are no longer selected end now. */
async function storeTargets(context: SyncContext, directory: Directory): Promise<readonly StreamTargets[]> {
  const { ingest, settings, signal } = context;
  const at = serviceNow(context);
  const targets = resolveTargets(settings, directory, at);
  for (const selected of targets) {
    const { stream, rules, unresolved: unresolvedIndexTypes } = selected;
    const declaration = { stream, targets: selected.targets, rules, unresolvedIndexTypes, at };
    await ingest.call("commitTargets", declaration, signal);
  }
  return targets;
}

const UNANSWERED_MESSAGE =
  "the service has not answered for a minute: the stored lookups are used until it does";

function shrunkenLookupProblem(
  stream: LookupStream,
  { missing, listed }: { missing: number; listed: number },
): Problem {
  const message = `${streamTable[stream].endpoint} lacks ${missing} of ${listed} known entries: nothing is delisted until they are back`;
  return { stream, code: "shrunken_list", message };
}

/** Whether nothing is known to select because the list of it could not be fetched, which is reported already. */
function isExplained({ setting, missing }: SelectorNotice, problems: readonly Problem[]): boolean {
  if (missing !== "candidates") return false;
  if (setting.endsWith(".LX")) return problems.some(({ what }) => what === LIQUID_INDICES);
  const list = setting.endsWith(".GWA") ? "assets" : "markets";
  return problems.some(({ stream }) => stream === list);
}

/** The rest of the run begins without a ranking that takes longer. */
const FIRST_WAIT_MS = 30_000;
/** After the rest of the run, an endpoint that has failed before gets this much longer. */
const LAST_WAIT_MS = 20_000;

/**
 * Fetches the ranking in the background: a dead `/market-cap` must not hold up what needs no ranking, or what a stored
 * one can select. With a cadence the market capitalisations are also stored.
 */
function startRankingFetch(context: SyncContext, cadenceSeconds: number | undefined) {
  const { clock } = context;
  const cancellation = new AbortController();
  const cancellable = { ...context, signal: AbortSignal.any([context.signal, cancellation.signal]) };
  const firstFailure = Promise.withResolvers<undefined>();
  let lastError: unknown;
  const fetch = () => fetchMarketCaps(cancellable, cadenceSeconds);
  const cancel = () =>
    cancellation.abort(new Failure("the ranking is no longer needed", { code: "stopped" }));
  const fetched = retryUntilDone(cancellable, fetch, (error) => {
    lastError = error;
    firstFailure.resolve(undefined);
  });
  // Whoever waits for the ranking gets its failure. Then no timer is needed.
  fetched.catch(() => {}).finally(cancel);
  const waitFor = (ms: number) => clock.sleep(ms, cancellable.signal).then(() => undefined);
  return {
    cancel,

    /** Returns the asset ids, largest first; undefined after a failed try that is being repeated. Throws a final failure. */
    waitForFirstTry: (): Promise<readonly string[] | undefined> =>
      Promise.race([fetched, firstFailure.promise, waitFor(FIRST_WAIT_MS)]),

    /** Waits a little longer, when nothing else is left to do. Throws if there is still no ranking. */
    async waitForLastTry(): Promise<readonly string[]> {
      const ranking = await Promise.race([fetched, waitFor(LAST_WAIT_MS)]).finally(cancel);
      if (ranking === undefined) throw rankingFailure(lastError);
      return ranking;
    },

    /** What went wrong so far, while tries are under way. */
    get failure(): Failure {
      return rankingFailure(lastError);
    },
  };
}

/** The same code as if the circuit breaker had given the endpoint up: all else was fetched meanwhile. A doubtful list says so itself. */
function rankingFailure(lastError: unknown): Failure {
  if (lastError instanceof Failure && isInvalidResponse(lastError)) return lastError;
  const { endpoint } = streamTable.market_caps;
  const why = lastError instanceof Error ? lastError.message : "no answer";
  return new Failure(`${endpoint} keeps failing while other endpoints answer (${why})`, {
    code: "endpoint_failing",
    remedy: "the rest is synced; run again later, and if it lasts, contact the service's operator",
    cause: lastError,
  });
}
