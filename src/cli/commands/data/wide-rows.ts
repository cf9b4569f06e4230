import type { SeriesInfo } from "../../../library/rows.ts";
import type { Cell, OutputColumn } from "./output-columns.ts";

/** A row of one series. Those of `asof` have the moment that was asked for. */
export interface TimedRow {
  readonly ts: number | null;
  readonly time: string | null;
  readonly at_ts?: number;
  readonly at?: string;
  readonly is_complete?: 0 | 1;
}

/** A row of all series at one time: undefined where a series has none. */
interface WideRow<Row> {
  readonly ts: number;
  readonly time: string;
  readonly own: readonly (Row | undefined)[];
}

const tsOf = ({ ts, at_ts = ts ?? 0 }: TimedRow): number => at_ts;
const timeOf = ({ time, at = time ?? "" }: TimedRow): string => at;

/** Joins series, each in order of time: one row for each timestamp that any of them has. */
export function* mergeByTime<Row extends TimedRow>(all: readonly Iterator<Row>[]): Generator<WideRow<Row>> {
  const heads = all.map(nextOf);
  for (;;) {
    let first: Row | undefined;
    for (const head of heads) if (head && (first === undefined || tsOf(head) < tsOf(first))) first = head;
    if (first === undefined) return;
    const ts = tsOf(first);
    const own = heads.map((head) => (head && tsOf(head) === ts ? head : undefined));
    yield { ts, time: timeOf(first), own };
    own.forEach((row, at) => {
      const rows = all[at];
      if (row && rows) heads[at] = nextOf(rows);
    });
  }
}

function nextOf<Row>(rows: Iterator<Row>): Row | undefined {
  const next = rows.next();
  return next.done === true ? undefined : next.value;
}

/**
 * `ts`, `time`, and the chosen columns of each series: `BTC`, or `BTC_open` if several are chosen. Of bars also `is_complete`:
 * 1 if every series has a complete bar.
 */
export function wideColumns<Row extends TimedRow>(
  all: readonly SeriesInfo[],
  chosen: readonly OutputColumn<Row>[],
  hasCompleteness: boolean,
): OutputColumn<WideRow<Row>>[] {
  const completeness: OutputColumn<WideRow<Row>> = {
    name: "is_complete",
    type: "flag",
    read: ({ own }) => (own.every((row) => row?.is_complete === 1) ? 1 : 0),
  };
  const values = all.flatMap((series, at) =>
    chosen.map(({ name, type, read }) => ({
      name: chosen.length === 1 ? labelOf(series, all) : `${labelOf(series, all)}_${name}`,
      type,
      read: ({ own }: WideRow<Row>): Cell => {
        const row = own[at];
        return row === undefined ? null : read(row);
      },
    })),
  );
  return [
    { name: "ts", type: "integer", read: ({ ts }) => ts },
    { name: "time", type: "text", read: ({ time }) => time, readTs: ({ ts }) => ts },
    ...values,
    ...(hasCompleteness ? [completeness] : []),
  ];
}

/** The name; with its index type, or the id alone, if others share it. */
function labelOf({ name, index_type, index_id }: SeriesInfo, all: readonly SeriesInfo[]): string {
  const namesakes = all.filter((other) => other.name === name);
  if (namesakes.length === 1) return name;
  return namesakes.filter((other) => other.index_type === index_type).length === 1
    ? `${index_type}:${name}`
    : index_id;
}
