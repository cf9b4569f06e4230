// A part of a declared view as a table: its columns are those of the SQL, each with a name and a format for all pages.
//   <ViewTable id="funding" label="Perpetuals" part={parts.funding} empty="No perpetuals are synced." />

import type { ViewPart } from "../../api-answers.ts";
import { type DataColumn, DataTable, type DataTableProps } from "./data-table.tsx";
import { amount, basisPoints, count, percentChange, quote, signOf, title } from "./text-format.ts";
import { duration, minuteOf, zoneName } from "./time-format.ts";

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
