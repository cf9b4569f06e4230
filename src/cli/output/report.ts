import type { Problem } from "../../sync/context/context.ts";
import type { UnselectedSeries } from "../../sync/selection/named-series.ts";
import { formatNumber, formatTable, wrapText } from "./text.ts";

/** The text lists this many items of a list; --json lists all. */
const MAX_LISTED = 20;

/** A part of a report, for people and for `--json`. */
export interface ReportPart {
  /** Properties of the JSON object. */
  readonly json?: object;
  readonly lines?: readonly string[];
}

export function printReport(parts: readonly ReportPart[], isJson = false): string {
  return isJson
    ? `${JSON.stringify(Object.assign({}, ...parts.map(({ json }) => json)), null, 2)}\n`
    : `${parts.flatMap(({ lines = [] }) => lines).join("\n")}\n`;
}

/** A property of each object in JSON if it has a key, a column of the table if it has a label. */
interface ReportColumn<Row> {
  readonly key?: string;
  readonly label?: string;
  readonly value: (row: Row) => string | number;
  /** Default: with separators of thousands. */
  readonly format?: (value: number) => string;
}

/** `totals`: the labels of the columns that the last row of the table sums up. */
export function tablePart<Row>(
  key: string,
  rows: readonly Row[],
  columns: readonly ReportColumn<Row>[],
  totals: readonly string[] = [],
): ReportPart {
  const shown = columns.filter(({ label }) => label !== undefined);
  const toCell = ({ format = formatNumber }: ReportColumn<Row>, value: string | number) =>
    typeof value === "string" ? value : format(value);
  const sum = (column: ReportColumn<Row>) =>
    rows.reduce((total, row) => total + Number(column.value(row)), 0);
  const total = shown.map((column, at) =>
    totals.includes(column.label ?? "") ? toCell(column, sum(column)) : at === 0 ? "total" : "",
  );
  const table = formatTable(
    [
      shown.map(({ label = "" }) => label),
      ...rows.map((row) => shown.map((column) => toCell(column, column.value(row)))),
      ...(totals.length > 0 ? [total] : []),
    ],
    shown.map((_, at) => (at === 0 ? "left" : "right")),
  );
  const objects = rows.map((row) =>
    Object.fromEntries(columns.flatMap((column) => (column.key ? [[column.key, column.value(row)]] : []))),
  );
  return { json: { [key]: objects }, lines: [table] };
}

/** One wrapped line for each item. */
export function listPart<Item>(
  key: string,
  items: readonly Item[],
  { toJson = (item) => item, toText }: { toJson?: (item: Item) => unknown; toText: (item: Item) => string },
): ReportPart {
  const lines = items.slice(0, MAX_LISTED).map((item) => wrapText(toText(item), "- "));
  const more = items.length - MAX_LISTED;
  if (more > 0) lines.push(`  and ${formatNumber(more)} more: --json lists all of them`);
  return { json: { [key]: items.map(toJson) }, lines };
}

export function problemsPart(problems: readonly Problem[]): ReportPart {
  const toText = ({ stream, what, message }: Problem) =>
    `${stream}${what === undefined ? "" : ` (${what})`}: ${message}`;
  return { json: { problems }, lines: problems.map((problem) => wrapText(toText(problem), "- ")) };
}

/** Series that the settings select for some of the streams only. */
export function unselectedPart(notSelected: readonly UnselectedSeries[]): ReportPart {
  return listPart("not_selected", notSelected, {
    toJson: ({ name, indexType, indexId, streams }) => ({
      name,
      index_type: indexType,
      index_id: indexId,
      streams,
    }),
    toText: ({ name, indexType, streams }) =>
      `${name} (${indexType}) is not selected for ${streams.join(" and ")}: backfill --fetch fetches it once`,
  });
}
