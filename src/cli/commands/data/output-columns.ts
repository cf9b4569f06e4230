import type { TableColumn } from "../../../export/parquet-writer.ts";
import type { AsOfRow, BarRow, TickRow } from "../../../library/rows.ts";
import { suggestWord } from "../../../model/did-you-mean.ts";
import { usageFailure } from "../../../model/failure.ts";

/** A value of an output row. */
export type Cell = string | number | null;

/** A column of a command's output: how Parquet stores it, and how a row has it. */
export interface OutputColumn<Row> extends TableColumn {
  readonly read: (row: Row) => Cell;
  /** Of a text of time: the moment itself. Parquet has a type for it. */
  readonly readTs?: (row: Row) => number | null;
}

type ColumnTypes<Row> = { readonly [Name in keyof Row]: TableColumn["type"] };

function defineColumns<
  Row extends { readonly [Name in keyof Row]: Cell } & {
    readonly ts: number | null;
    readonly at_ts?: number;
  },
>(types: ColumnTypes<Row>): readonly OutputColumn<Row>[] {
  return (Object.entries(types) as [keyof Row & string, TableColumn["type"]][]).map(([name, type]) => ({
    name,
    type,
    read: (row) => row[name],
    ...(name === "time" && { readTs: ({ ts }) => ts }),
    ...(name === "at" && { readTs: ({ at_ts }) => at_ts ?? null }),
  }));
}

const names = { index_type: "text", index_id: "text", name: "text" } as const;
const labels = { ...names, ts: "integer", time: "text" } as const;
const remarks = { quality: "text", source: "text" } as const;

/** Each figure with its exact digits. */
function decimals<const Name extends string>(...figures: readonly Name[]) {
  type Decimals = { readonly [N in Name]: "real" } & { readonly [N in Name as `${N}_exact`]: "text" };
  return Object.fromEntries(
    figures.flatMap((name) => [
      [name, "real"],
      [`${name}_exact`, "text"],
    ]),
  ) as Decimals;
}

export const tickOutput = defineColumns<TickRow>({
  ...labels,
  ...decimals("price", "volume", "tick_volume"),
  is_settled: "flag",
  source: "text",
  quality: "text",
  extra: "text",
});

export const barOutput = defineColumns<BarRow>({
  ...labels,
  ...decimals("open", "high", "low", "close", "volume_24h"),
  n_ticks: "integer",
  expected_ticks: "integer",
  coverage: "real",
  is_complete: "flag",
  ...remarks,
});

export const asOfOutput = defineColumns<AsOfRow>({
  ...names,
  at_ts: "integer",
  at: "text",
  ts: "integer",
  time: "text",
  ...decimals("price", "volume"),
  age_seconds: "real",
  is_complete: "flag",
  ...remarks,
});

/** The columns of `--columns`, in their order; all without it. */
export function selectColumns<Row>(
  all: readonly OutputColumn<Row>[],
  list: string | undefined,
): readonly OutputColumn<Row>[] {
  if (list === undefined) return all;
  return list.split(",").map((given) => {
    const column = all.find(({ name }) => name === given.trim());
    if (column) return column;
    const names = all.map(({ name }) => name);
    const remedy = suggestWord(given, names, `give some of ${names.join(", ")}`);
    throw usageFailure(`--columns cannot be ${given}`, remedy);
  });
}
