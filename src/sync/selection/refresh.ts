import { type Stream, streamTable } from "../../model/streams.ts";
import type { Random } from "../../runtime/backoff.ts";
import { isShrunken, storedRanking } from "../../warehouse/lookups/lookup-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import {
  type Intake,
  keepClockSkew,
  learnServiceTime,
  type SyncSettings,
  serviceNow,
} from "../context/context.ts";
import { judge, type Problem, problemOf } from "../context/error-policy.ts";
import { Complaints } from "../context/problem-log.ts";
import { persistently } from "../context/retry.ts";
import { SHRUNKEN_LIST } from "../context/run-stats.ts";
import { learnLiquidIndices, liquidCandidates } from "../fetch/liquid-indices.ts";
import { type LookupStream, refreshLookup, wholeLookups } from "../fetch/lookups.ts";
import { takeMarketCaps } from "../fetch/market-caps.ts";
import { type Directory, storedDirectory } from "./directory.ts";
import {
  neededLists,
  needsLiquidIndices,
  needsRanking,
  type SelectorNotice,
  type WantedSeries,
  wantedSeries,
} from "./targets.ts";

export interface StoredSelection {
  readonly settings: SyncSettings;
  readonly reader: Connection;
  readonly random: Random;
  readonly wsUrl: string;
}

/**
 * Says in the ledger what the settings select of the directory that was stored last, so that the live feed need not wait for
 * the lookups: what is not heard of the exchange tickers is lost. Undefined: too little is stored.
 */
export async function selectFromStore(
  intake: Intake,
  { settings, reader, random, wsUrl }: StoredSelection,
): Promise<Directory | undefined> {
  const { client, signal } = intake;
  const { marketCap } = settings.streams;
  const directory: Directory = {
    ...storedDirectory(reader),
    LX: liquidCandidates(settings.lxIndexIds, reader, []),
    // One that nobody has kept up to date would end what a fresher one, which was not stored, has selected.
    ranking: marketCap === false ? undefined : storedRanking(reader),
  };
  const isFilled =
    directory.GWA.length > 0 && neededLists(settings).every((list) => directory[list].length > 0);
  if (!isFilled) return undefined;
  // The live feed needs its token anyway, and whoever grants or refuses it dates the answer.
  if (client.serverNow() === undefined) await client.tokens.get(wsUrl, signal).catch(() => {});
  await learnServiceTime(intake, random);
  await keepClockSkew(intake, reader);
  await declareSelected(intake, settings, directory);
  return directory;
}

const LIQUID_INDICES = 3;
/** A service that hangs is given up only after many minutes: who looks on is told before. */
const TOLD_AFTER_MS = 60_000;

export interface Preparation {
  readonly settings: SyncSettings;
  readonly reader: Connection;
  readonly random: Random;
  /** Whether the market capitalisations are part of this run, or only their order is wanted. */
  readonly storeMarketCaps: boolean;
  /** What keeps this from getting on while it is still tried, each time that changes. */
  readonly hindered?: (problems: readonly Problem[]) => void;
}

export interface Prepared {
  readonly directory: Directory;
  readonly wanted: WantedSeries;
  readonly problems: readonly Problem[];
  /** Something could not be had that may be had soon: it is worth asking again before the usual time. */
  readonly isWorthAskingAgain: boolean;
}

/** Refreshes the lookups and the ranking, and says in the ledger what the settings select of them. */
export async function prepare(intake: Intake, preparation: Preparation): Promise<Prepared> {
  const { settings, reader, random } = preparation;
  const { client, clock, signal, tally, log } = intake;
  const problems: Problem[] = [];
  const hindrances = new Complaints(preparation.hindered ?? (() => {}));
  let isWorthAskingAgain = false;
  /** Undefined, and a problem for the report, when it cannot be had in this run. */
  const tryFor = async <T>(stream: Stream, what: string | undefined, work: () => Promise<T>) => {
    const failed = (error: unknown) => hindrances.raise(stream, problemOf(stream, what, error));
    const overdue = clock.after(TOLD_AFTER_MS, () => hindrances.raise(stream, unanswered(stream)));
    try {
      return await persistently({ clock, random, signal, answers: () => tally.answers, failed }, work);
    } catch (error) {
      const verdict = judge(error, tally.answers);
      if (verdict === "stop") throw error;
      isWorthAskingAgain ||= verdict === "later";
      problems.push(problemOf(stream, what, error));
      return undefined;
    } finally {
      overdue();
      hindrances.settle(stream);
    }
  };

  if (settings.streams.lookups !== false) {
    const streams = wholeLookups;
    await Promise.all(
      streams.map(async (stream) => {
        const commit = await tryFor(stream, undefined, () => refreshLookup(intake, stream));
        if (commit?.incident) problems.push(shrunkenLookup(stream, commit.incident));
      }),
    );
  }
  // Lookups that are switched off, or all forbidden, may not have told it; what follows counts by it.
  await learnServiceTime(intake, random);
  await keepClockSkew(intake, reader);

  const known = storedRanking(reader);
  const { marketCap } = settings.streams;
  const every = preparation.storeMarketCaps && marketCap !== false ? marketCap.every : undefined;
  const fresh =
    every !== undefined || needsRanking(settings)
      ? await tryFor("market_caps", undefined, () => takeMarketCaps(intake, every))
      : undefined;
  if (fresh && known && isShrunken(fresh.length, known.length))
    problems.push(shrunkenRanking(fresh.length, known.length));
  const isLiquidKnown = Object.keys(settings.lxIndexIds).length >= LIQUID_INDICES;
  const learned =
    needsLiquidIndices(settings) && !isLiquidKnown
      ? await tryFor("index_ticks", "LX", () => learnLiquidIndices(client, serviceNow(intake), signal))
      : [];

  const directory: Directory = {
    ...storedDirectory(reader),
    LX: liquidCandidates(settings.lxIndexIds, reader, learned ?? []),
    ranking: believableRanking(fresh ?? [], known),
  };
  const wanted = await declareSelected(intake, settings, directory);
  for (const notice of wanted.notices) {
    if (notice.kind === "shared") {
      log.warn(
        { setting: notice.setting, names: notice.names },
        "names are shared by several: all are selected",
      );
    }
  }
  const told = wanted.streams.flatMap(({ stream }) => {
    const key = `sync.${streamTable[stream].setting}.`;
    return noticeProblems(
      stream,
      wanted.notices.filter(({ setting }) => setting.startsWith(key)),
    );
  });
  return { directory, wanted, problems: [...withoutEcho(problems, learned), ...told], isWorthAskingAgain };
}

/** Says in the ledger what the settings select of a directory; what they no longer select ends now. */
export async function declareSelected(
  intake: Intake,
  settings: SyncSettings,
  directory: Directory,
): Promise<WantedSeries> {
  const at = serviceNow(intake);
  const wanted = wantedSeries(settings, directory, at);
  for (const stream of wanted.streams)
    await intake.ingest.call("commitWanted", { ...stream, at }, [], intake.signal);
  return wanted;
}

function unanswered(stream: Stream): Problem {
  const message = "the service has not answered for a minute: what was stored last serves until it does";
  return { stream, code: "unanswered", message };
}

function shrunkenLookup(
  stream: LookupStream,
  { missing, listed }: { missing: number; listed: number },
): Problem {
  const message = `${streamTable[stream].endpoint} lacks ${missing} of ${listed} that it listed: nothing is taken off until it is whole again`;
  return { stream, code: SHRUNKEN_LIST, message };
}

/** A ranking that has lost most of its assets would end as many series: the one that is known stands for it. */
function believableRanking(fresh: readonly string[], known: readonly string[] | undefined) {
  if (known && isShrunken(fresh.length, known.length)) return known;
  return fresh.length > 0 ? fresh : undefined;
}

function shrunkenRanking(listed: number, known: number): Problem {
  const message = `/market-cap ranks ${listed} assets where ${known} are known: the ranking that is stored serves until it is whole again`;
  return { stream: "market_caps", code: SHRUNKEN_LIST, message };
}

/** What selectors ask for and cannot be given. */
export function noticeProblems(stream: Stream, notices: readonly SelectorNotice[]): Problem[] {
  return notices.flatMap(({ setting, kind, names }): Problem[] => {
    if (kind === "shared") return [];
    const message =
      kind === "unknown"
        ? `${setting} names ${names.join(", ")}, which the service does not list: check the spelling`
        : `${setting} asks for the largest assets, and no ranking is known: it needs the market capitalisations`;
    return [{ stream, what: setting, code: `selector_${kind}`, message }];
  });
}

/** Where liquid indices are known from before, the walks themselves tell what stands in their way. */
function withoutEcho(
  problems: readonly Problem[],
  learned: readonly string[] | undefined,
): readonly Problem[] {
  return learned === undefined ? problems : problems.filter(({ what }) => what !== "LX");
}
