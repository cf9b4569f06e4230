// A table whose columns are declared: label, value, format, order and tone of a column are stated once.
//   const columns: DataColumn<Quote>[] = [{ label: "vs index", key: "deviation", field: "deviation_bps", format: points, tone: signOf }];
//   <DataTable id="quotes" label="Quotes" columns={columns} rows={quotes} attributes={…} sort={{ by, onSort }} />
// Those of a part of a declared view are the columns of its SQL, each with a name and a format for all pages:
//   <ViewTable id="funding" label="Perpetuals" part={parts.funding} empty="No perpetuals are synced." />

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ViewPart } from "../../api-answers.ts";
import { compareValues, sortNames } from "./page-base.ts";
import { amount, basisPoints, count, percentChange, quote, signOf, title } from "./text-format.ts";
import { duration, minuteOf, zoneName } from "./time-format.ts";

export interface DataColumn<Row> {
  readonly label: string;
  /** What an address calls it; only a column with a key can be sorted by. */
  readonly key?: string;
  /** What has the value, unless `value` finds it. */
  readonly field?: keyof Row & string;
  /** What it is sorted by, and what `format` shows. */
  readonly value?: (row: Row) => string | number | null | undefined;
  /** Of a figure, which is on the right; without a value, a dash is shown. */
  readonly format?: (figure: number) => string;
  /** More than the text: without it the value is shown as it is. */
  readonly cell?: (row: Row, text: string) => ComponentChildren;
  /** A second line. */
  readonly note?: (row: Row) => string;
  readonly isHeading?: boolean;
  /** The colour of a figure, by its text: `signOf`. */
  readonly tone?: (text: string, row: Row) => string;
  readonly shade?: (row: Row, text: string) => string;
  /** Names and ranks begin with the first, figures with the largest. */
  readonly isAscending?: boolean;
  /** A phone has no room for it. */
  readonly isWide?: boolean;
  readonly className?: string;
}

interface DataTableProps<Row> {
  readonly id: string;
  readonly label: string;
  readonly columns: readonly DataColumn<Row>[];
  readonly rows: readonly Row[];
  /** Of a row: its `key`, class and data. */
  readonly attributes?: (row: Row) => { readonly key: string; readonly [name: string]: string | undefined };
  /** `by`: the key of a column, with a minus if the largest is first; else the rows stay as they are. */
  readonly sort?: {
    readonly by: string;
    readonly onSort: (by: string) => void;
    /** Rows that stay below the others in every order. */
    readonly isLast?: (row: Row) => boolean;
  };
  readonly search?: { readonly text: string; readonly of: (row: Row) => string; readonly none: string };
  /** Shows so many rows, and as many more on request. */
  readonly step?: number;
  readonly empty?: string;
}

const classOf = <Row,>({ format, isWide, className }: DataColumn<Row>, tone = "") =>
  [format ? "number" : "", isWide ? "wide" : "", className, tone].filter(Boolean).join(" ") || undefined;

function valueIn<Row>({ field, value }: DataColumn<Row>, row: Row): string | number | null {
  const found = value ? value(row) : field && row[field];
  return typeof found === "string" || typeof found === "number" ? found : null;
}

export function textIn<Row>(column: DataColumn<Row>, row: Row): string {
  const value = valueIn(column, row);
  return value === null ? "–" : (column.format?.(Number(value)) ?? String(value));
}

function Cell<Row>({ column, row }: { column: DataColumn<Row>; row: Row }) {
  const text = textIn(column, row);
  const style = { backgroundColor: column.shade?.(row, text) };
  const own = { class: classOf(column, column.tone?.(text, row)), style };
  const note = column.note?.(row);
  const first = column.cell ? column.cell(row, text) : text;
  const shown = note ? [first, <br key="br" />, <span key="note" class="soft" children={note} />] : first;
  const [Tag, scope] = column.isHeading ? (["th", "row"] as const) : (["td"] as const);
  return <Tag {...{ ...own, scope, children: shown }} />;
}

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { id, label, columns, rows, attributes, sort, search } = props;
  const { empty, step = Number.POSITIVE_INFINITY } = props;
  const [shown, setShown] = useState(step);
  const searched = search?.text.trim().toLowerCase() ?? "";
  useEffect(() => setShown(step), [searched, step]);
  const nothing = (name: string, text: string) => <p class="soft empty" id={`no-${name}`} children={text} />;
  if (rows.length === 0 && empty !== undefined) return nothing(id, empty);
  const sorted = columns.find(({ key }) => key !== undefined && key === sort?.by.replace("-", ""));
  const sign = sort?.by.startsWith("-") ? -1 : 1;
  const found = search ? rows.filter((row) => search.of(row).toLowerCase().includes(searched)) : rows;
  const rankOf = (row: Row) => Number(sort?.isLast?.(row) ?? false);
  const order = (column: (typeof columns)[number]) => (a: Row, b: Row) =>
    rankOf(a) - rankOf(b) || compareValues(valueIn(column, a), valueIn(column, b), sign);
  const ordered = sorted ? found.toSorted(order(sorted)) : found;
  const head = (column: DataColumn<Row>) => {
    if (column.key === undefined) return column.label;
    const isFirstAscending = column === sorted ? sign < 0 : column.isAscending;
    const arrow = column === sorted ? sortNames[sign].arrow : "";
    return (
      <button type="button" onClick={() => sort?.onSort(`${isFirstAscending ? "" : "-"}${column.key}`)}>
        {`${column.label}${arrow}`}
      </button>
    );
  };
  return (
    <>
      {/* A table that is wider than a phone must scroll with the keyboard too. */}
      <div class="scroll" tabIndex={0} role="region" aria-label={`${label}, as a table`}>
        <table id={id}>
          <thead>
            <tr>
              {columns.map((column) => (
                <th
                  scope="col"
                  class={classOf(column)}
                  aria-sort={column === sorted ? sortNames[sign].name : undefined}
                >
                  {head(column)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {ordered.slice(0, shown).map((row, at) => {
              const { key = at, ...own } = attributes?.(row) ?? {};
              const cells = columns.map((column) => <Cell column={column} row={row} />);
              return <tr key={key} {...own} children={cells} />;
            })}
          </tbody>
        </table>
      </div>
      {search && found.length === 0 && nothing("match", search.none)}
      {found.length > shown && (
        <button type="button" class="more" id="more" onClick={() => setShown(shown + step)}>
          {`Show more (${count(found.length - shown)})`}
        </button>
      )}
    </>
  );
}

export type Row = ViewPart["rows"][number];

const percentOfShare = (value: number) => percentChange(value * 100, Math.abs(value) < 0.001 ? 4 : 2);
const signed = { tone: signOf };
const wide = { isWide: true };
/** Not needed beside the others. */
const hidden = ["is_complete", "before", "id", "expiration", "ts"];
const wraps = { className: "wraps" };

/** By column of the SQL. */
const figures: Readonly<Record<string, Partial<DataColumn<Row>>>> = {
  rank: { label: "Rank", format: count },
  price: { label: "Price, USD", format: quote, ...wide },
  price_change_24h: { label: "24 h", format: percentChange, ...signed },
  price_change_7d: { label: "7 days", format: percentChange, ...signed },
  price_change_30d: { label: "30 days", format: percentChange, ...signed },
  market_cap: { label: "Market cap, USD", format: amount },
  volume_usd: { label: "Volume, 24 h, USD", format: amount, ...wide },
  age_seconds: { label: "Age", format: duration, ...wide },
  seconds: { label: "Length", format: duration, ...wide },
  close: { label: "From ticks", format: quote },
  service_close: { label: "Daily bar", format: quote },
  largest_rel_diff: {
    label: "Largest difference, OHLC",
    format: (value) => `${(value * 100).toFixed(value < 0.001 ? 4 : 2)} %`,
  },
  coverage: { label: "Covered", format: (value) => `${Math.floor(value * 100)} %`, ...wide },
  last: { label: "Last", format: quote },
  deviation_bps: { label: "vs index", format: (value) => basisPoints(value, true), ...signed },
  days_to_expiry: { label: "Days left", format: (value) => count(Math.round(value)) },
  basis: { label: "Basis", format: percentOfShare, ...signed, ...wide },
  annualised_basis: { label: "Per year", format: percentOfShare, ...signed },
  premium: { label: "From the index", format: percentOfShare, ...signed, ...wide },
  funding_rate: { label: "Funding, per 8 h", format: (value) => percentChange(value * 100, 4), ...signed },
  funding_per_year: { label: "Per year", format: percentOfShare, ...signed },
  mean_per_year: { label: "Mean of 7 days", format: percentOfShare, ...signed },
  index_price: { label: "Index", format: quote, ...wide },
  open_interest_usd: { label: "Open interest, USD", format: amount, ...wide },
  reason: { ...wide, ...wraps },
  quality: wraps,
  after: { className: "ellipsis" },
};

/** Of tables of contracts: a phone has the exchange below the contract. */
export const contractColumns: typeof figures = {
  contract: {
    cell: ({ contract, exchange }) => [contract, <span key="on" class="soft narrow" children={exchange} />],
  },
  exchange: { className: "faint", ...wide },
};

export const exploreLink = (sql: string) => `/explore#${new URLSearchParams({ sql })}`;

const isTime = (name: string) => /_time$|^time$|_at$/.test(name);

/** A column as it is shown: figures lead to the SQL. */
export function columnOf(name: string, sql: string): DataColumn<Row> {
  const own = figures[name];
  // `from_time` → From (UTC)
  const label = isTime(name) ? `${title(name.replace(/_time$/, ""))} (${zoneName()})` : title(name);
  const cell = (row: Row, text: string) => {
    if (own?.format) return row[name] == null ? text : <a href={exploreLink(sql)}>{text}</a>;
    return name === "stream" ? title(text) : isTime(name) ? minuteOf(row[name] as string | null) : text;
  };
  return { label, value: (row) => row[name], cell, ...(isTime(name) ? wraps : {}), ...own };
}

type TableProps = Omit<DataTableProps<Row>, "rows" | "columns">;

/** `own`: what a page shows otherwise. A column without any value is left out. */
export function ViewTable({ part, own, ...table }: TableProps & { part: ViewPart; own?: typeof figures }) {
  const { sql, rows } = part;
  const names = Object.keys(rows[0] ?? {}).filter(
    (name) => !hidden.includes(name) && rows.some((row) => row[name] !== null),
  );
  const key = (name: string) => table.sort && { key: name };
  const columns = names.map((name) => ({ ...columnOf(name, sql), ...key(name), ...own?.[name] }));
  return <DataTable {...table} rows={rows} columns={columns} />;
}
