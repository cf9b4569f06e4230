import { resolveSelector, type Selection } from "../../model/selector.ts";
import type { DerivativeType, Stream } from "../../model/streams.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SyncContext, SyncSettings } from "../context/context.ts";
import { affectsWholeEndpoint, classifyError, type Problem, toProblem } from "../context/error-policy.ts";
import { retryUntilDone, runConcurrently } from "../context/retry.ts";
import { fetchDerivativeTicks, findDerivativeExchanges } from "../fetch/derivatives.ts";
import { fetchExchangeTicks } from "../fetch/exchange-tickers.ts";
import { type Directory, exchangeName } from "../selection/directory.ts";
import { selectExchanges } from "../selection/exchanges.ts";
import { noticesToProblems } from "../selection/refresh.ts";
import { selectorNotices } from "../selection/targets.ts";

interface FetchSnapshotsOptions {
  readonly settings: SyncSettings;
  readonly directory: Directory;
  readonly reader: Connection;
  readonly random: Random;
  readonly includesStream: (stream: Stream) => boolean;
}

/** Runs a task for each exchange. If an endpoint fails as a whole, the client sends it no further requests. */
type RunForExchanges = <Id extends string | null>(
  stream: Stream,
  exchangeIds: readonly Id[],
  task: (exchangeId: Id) => Promise<void>,
) => Promise<void>;

/** Fetches one snapshot of the selected exchange tickers and derivatives. */
export async function fetchSnapshots(
  context: SyncContext,
  options: FetchSnapshotsOptions,
): Promise<Problem[]> {
  const problems: Problem[] = [];
  const { settings, directory, random } = options;
  const run: RunForExchanges = async (stream, exchangeIds, task) => {
    await runConcurrently(exchangeIds, settings.concurrency, async (exchangeId) => {
      try {
        await retryUntilDone(context, random, () => task(exchangeId));
      } catch (error) {
        if (classifyError(error, context.stats.successCount) === "stop") throw error;
        const concernsEndpoint = affectsWholeEndpoint(error);
        const what =
          concernsEndpoint || exchangeId === null ? undefined : exchangeName(directory, exchangeId);
        const problem = toProblem(stream, what, error);
        const isReported = problems.some(
          (each) => each.stream === stream && each.message === problem.message,
        );
        if (!concernsEndpoint || !isReported) problems.push(problem);
      }
    });
  };
  const reportNotices = (stream: Stream, setting: string, selection: Selection) =>
    void problems.push(...noticesToProblems(stream, selectorNotices(setting, selection)));

  await fetchExchangeTickers(context, options, run, reportNotices);
  await fetchDerivatives(context, options, run, reportNotices);
  return problems;
}

type ReportNotices = (stream: Stream, setting: string, selection: Selection) => void;

async function fetchExchangeTickers(
  context: SyncContext,
  { settings, directory, includesStream }: FetchSnapshotsOptions,
  run: RunForExchanges,
  reportNotices: ReportNotices,
): Promise<void> {
  const stream = "exchange_ticks";
  if (!includesStream(stream)) return;
  const { exchangeIds, markets, isResolved, selections } = selectExchanges(settings, directory);
  for (const [setting, selection] of selections) reportNotices(stream, setting, selection);
  if (!isResolved) return;
  const { refreshSeconds } = settings;
  await run(stream, exchangeIds, async (exchangeId) => {
    await fetchExchangeTicks(context, { exchangeId, markets, refreshSeconds });
  });
}

async function fetchDerivatives(
  context: SyncContext,
  { settings, directory, reader, includesStream }: FetchSnapshotsOptions,
  run: RunForExchanges,
  reportNotices: ReportNotices,
): Promise<void> {
  const stream = "derivative_ticks";
  const { derivatives: selectors } = settings.streams;
  if (selectors === false || (!includesStream(stream) && !includesStream("derivative_contracts"))) return;
  const exchanges = resolveSelector(selectors.exchanges, directory.exchanges, undefined);
  reportNotices("derivative_contracts", "sync.derivatives.exchanges", exchanges);
  const exchangeTypes = new Map<string, readonly DerivativeType[]>();
  await findDerivativeExchanges(context, exchangeTypes, selectors, directory, {
    reader,
    forEachExchange: (ids, task) => run("derivative_contracts", ids, task),
  });
  if (!includesStream(stream)) return;
  await run(stream, [...exchangeTypes.keys()], (exchangeId) =>
    fetchDerivativeTicks(context, exchangeId, exchangeTypes.get(exchangeId) ?? [], selectors.every),
  );
}
