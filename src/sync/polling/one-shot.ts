import { type Selection, select } from "../../model/selector.ts";
import type { DerivativeType, Stream } from "../../model/streams.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Intake, SyncSettings } from "../context/context.ts";
import { isOfWholeEndpoint, judge, type Problem, problemOf } from "../context/error-policy.ts";
import { persistently, workThrough } from "../context/retry.ts";
import { refreshContracts, takeDerivativeTicks } from "../fetch/derivatives.ts";
import { takeExchangeTicks } from "../fetch/exchange-tickers.ts";
import type { Directory } from "../selection/directory.ts";
import { selectExchanges } from "../selection/exchanges.ts";
import { noticeProblems } from "../selection/refresh.ts";
import { noticesOf } from "../selection/targets.ts";
import { findSupported } from "./supported-derivatives.ts";

export interface SnapshotTaking {
  readonly settings: SyncSettings;
  readonly directory: Directory;
  readonly random: Random;
  readonly isWanted: (stream: Stream) => boolean;
}

/** Does a list of errands on exchanges; who is refused one is refused all of them. */
type Errands = (
  stream: Stream,
  exchangeIds: readonly (string | null)[],
  errand: (exchangeId: string | null) => Promise<void>,
) => Promise<void>;

/** One snapshot of the exchange tickers and of the derivatives that the settings select. */
export async function takeSnapshots(intake: Intake, taking: SnapshotTaking): Promise<Problem[]> {
  const problems: Problem[] = [];
  const { settings, directory, random } = taking;
  const { clock, signal, tally } = intake;
  const waiting = { clock, random, signal, answers: () => tally.answers };
  const nameOf = (id: string | null) =>
    id === null ? undefined : (directory.exchanges.find((each) => each.id === id)?.labels[0] ?? id);
  const run: Errands = async (stream, exchangeIds, errand) => {
    let isRefused = false;
    await workThrough(exchangeIds, settings.concurrency, async (exchangeId) => {
      if (isRefused) return;
      try {
        await persistently(waiting, () => errand(exchangeId));
      } catch (error) {
        if (judge(error, tally.answers) === "stop") throw error;
        const isForAll = isOfWholeEndpoint(error);
        if (isForAll && isRefused) return;
        isRefused ||= isForAll;
        problems.push(problemOf(stream, isForAll ? undefined : nameOf(exchangeId), error));
      }
    });
  };
  const tell = (stream: Stream, setting: string, selection: Selection) =>
    void problems.push(...noticeProblems(stream, noticesOf(setting, selection)));

  await exchangeTickers(intake, taking, run, tell);
  await derivatives(intake, taking, run, tell);
  return problems;
}

type Tell = (stream: Stream, setting: string, selection: Selection) => void;

async function exchangeTickers(
  intake: Intake,
  { settings, directory, isWanted }: SnapshotTaking,
  run: Errands,
  tell: Tell,
): Promise<void> {
  const stream = "exchange_ticks";
  if (!isWanted(stream)) return;
  const { lines, markets, isResolved, selections } = selectExchanges(settings, directory);
  for (const [setting, selection] of selections) tell(stream, setting, selection);
  if (!isResolved) return;
  await run(stream, lines, (exchangeId) =>
    takeExchangeTicks(intake, { exchangeId, markets, refreshSeconds: settings.refreshSeconds }),
  );
}

async function derivatives(
  intake: Intake,
  { settings, directory, isWanted }: SnapshotTaking,
  run: Errands,
  tell: Tell,
): Promise<void> {
  const stream = "derivative_ticks";
  const { derivatives: asked } = settings.streams;
  if (asked === false || (!isWanted(stream) && !isWanted("derivative_contracts"))) return;
  const exchanges = select(asked.exchanges, directory.exchanges, undefined);
  tell("derivative_contracts", "sync.derivatives.exchanges", exchanges);
  const supported = new Map<string, readonly DerivativeType[]>();
  await findSupported(
    supported,
    asked,
    directory,
    (exchangeId, type) => refreshContracts(intake, exchangeId, type),
    (ids, errand) => run("derivative_contracts", ids, (exchangeId) => errand(exchangeId ?? "")),
  );
  if (!isWanted(stream)) return;
  await run(stream, [...supported.keys()], (exchangeId) =>
    takeDerivativeTicks(intake, exchangeId ?? "", supported.get(exchangeId ?? "") ?? [], asked.every),
  );
}
