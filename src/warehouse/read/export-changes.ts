import { isDaily, rowStreams } from "../../model/streams.ts";
import { startOfDay } from "../../model/time.ts";
import { normalise } from "../../model/time-range.ts";
import { readPresentTs } from "../coverage/targets.ts";
import type { Connection } from "../sqlite/connection.ts";
import { canContinue, type JournalEntry, readEntries, readJournalPosition } from "../tables/journal.ts";
import { type ExportPeriod, readParts } from "./export-periods.ts";
import { comparesPrices, readRefreshPeriods } from "./export-rows.ts";

export type ExportedState = Readonly<ReturnType<typeof readExportedState>>;

/** The state of the warehouse from which an export is written: the journal and its last entry, and the service's time. */
export function readExportedState(connection: Connection) {
  const { id, seq } = readJournalPosition(connection);
  return {
    journal: { id, seq },
    present: readPresentTs(connection),
    refreshPeriods: readRefreshPeriods(connection),
  };
}

/**
 * Says of a period whether its rows and their coverage are as they were in an earlier state. The names of its series may have
 * changed. Without an earlier state of this file, or if the journal does not reach back to it, every period counts as changed.
 */
export function compareStates(
  connection: Connection,
  before: ExportedState | undefined,
  now: ExportedState,
): (period: ExportPeriod) => boolean {
  if (!before || !canContinue(readJournalPosition(connection), before.journal)) return () => false;
  const { seq: after } = before.journal;
  const entries = readEntries(connection, { after, until: now.journal.seq });
  const parts = new Map(rowStreams.map((stream) => [stream, readParts(connection, stream)]));
  const partsOf = ({ stream, key, keys }: JournalEntry) =>
    new Set(Array.from({ length: keys }, (_, i) => parts.get(stream)?.get(key + i) ?? null));
  const nameOf = ({ stream, part }: Pick<ExportPeriod, "stream" | "part">) => `${stream} ${part}`;
  const named = entries
    .filter(({ kind }) => kind !== "ledger")
    .flatMap((entry) => [...partsOf(entry)].map((part) => ({ ...entry, part })));
  const changed = new Map([...Map.groupBy(named, nameOf)].map(([name, own]) => [name, normalise(own)]));
  return ({ stream, part, from, to }) => {
    const tickerPeriod = before.refreshPeriods[stream];
    const hasPrices = comparesPrices(stream);
    if (hasPrices && tickerPeriod !== now.refreshPeriods[stream]) return false;
    // The first row of a period is compared with the last one before it.
    const first = hasPrices ? from - MAX_PERIODS_BEFORE * tickerPeriod : from;
    const ranges = changed.get(nameOf({ stream, part })) ?? [];
    if (ranges.some((range) => range.from < to && range.to > first)) return false;
    // A bar becomes final when its day ends.
    return !isDaily(stream) || startOfDay(before.present) === startOfDay(now.present) || to <= before.present;
  };
}

const MAX_PERIODS_BEFORE = 3;
