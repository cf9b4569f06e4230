import type { SeriesInfo } from "../../../library/rows.ts";
import type { CommandContext } from "../../support/context.ts";
import { type OutputFlags, writeData } from "./data-output.ts";
import type { Cell, OutputColumn } from "./output-columns.ts";

/** The rows of one series, in order of `ts`. */
interface SeriesRows<Row> {
  readonly series: SeriesInfo;
  readonly rows: Iterator<Row>;
}

interface TimedRow {
  readonly ts: number;
  readonly time: string;
  readonly is_complete?: 0 | 1;
}

/** A row of all series at one time: undefined where a series has none. */
interface WideRow<Row> extends TimedRow {
  readonly own: readonly (Row | undefined)[];
}

/** Joins the series by time: one row for each timestamp that any of them has. */
function* mergeByTime<Row extends TimedRow>(all: readonly SeriesRows<Row>[]): Generator<WideRow<Row>> {
  const heads = all.map(({ rows }) => nextOf(rows));
  for (;;) {
    let first: Row | undefined;
    for (const head of heads) if (head && (first === undefined || head.ts < first.ts)) first = head;
    if (first === undefined) return;
    const { ts, time } = first;
    const own = heads.map((head) => (head?.ts === ts ? head : undefined));
    yield { ts, time, own };
    own.forEach((row, at) => {
      const rows = all[at]?.rows;
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
function wideColumns<Row extends TimedRow>(
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

interface SeriesOutput<Plan extends { readonly series: SeriesInfo }, Row> {
  readonly plans: readonly Plan[];
  readonly columns: readonly OutputColumn<Row>[];
  readonly read: (plan: Plan) => IterableIterator<Row>;
  readonly countRows: () => number;
  /** Whether the rows have `is_complete`. */
  readonly hasCompleteness?: boolean;
}

/** Writes the rows of several series: one after the other, or with `--wide` side by side. */
export async function writeSeriesRows<Plan extends { readonly series: SeriesInfo }, Row extends TimedRow>(
  context: CommandContext,
  flags: OutputFlags & { readonly wide?: boolean },
  { plans, columns, read, countRows, hasCompleteness = false }: SeriesOutput<Plan, Row>,
): Promise<void> {
  if (flags.wide) {
    const all = plans.map((plan) => ({ series: plan.series, rows: read(plan) }));
    const series = plans.map((plan) => plan.series);
    const wide = wideColumns(series, columns, hasCompleteness);
    await writeData(context, flags, { columns: wide, rows: mergeByTime(all), countRows });
    return;
  }
  const rows = (function* () {
    for (const plan of plans) yield* read(plan);
  })();
  await writeData(context, flags, { columns, rows, countRows });
}
