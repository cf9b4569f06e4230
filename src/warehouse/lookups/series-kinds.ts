import { suggestWord } from "../../model/did-you-mean.ts";
import { Failure } from "../../model/failure.ts";
import type { RowStream, SnapshotStream } from "../../model/streams.ts";
import { timeOrder } from "../tables/row-parts.ts";
import { rowColumns, rowTables } from "../tables/row-tables.ts";

/** A stream whose rows a name can address. */
export type TickStream = "index_ticks" | SnapshotStream;

/** Every kind of series that a name can address: parser, readers and commands read this table. */
export const seriesKinds: Readonly<Record<TickStream, ReturnType<typeof defineKind>>> = {
  index_ticks: defineKind("index_ticks", null, "price", { last: "price" }),
  exchange_ticks: defineKind(
    "exchange_ticks",
    `SELECT listing AS key, exchange_id || ':' || market_id AS id, exchange || ':' || pair AS name, exchange || ':' || pair AS label,
      exchange_id AS ledgerId FROM listings`,
    "last",
    { price: "last" },
  ),
  derivative_ticks: defineKind(
    "derivative_ticks",
    `SELECT contract AS key, ifnull(exchange_id, '') || ':' || id AS id, exchange || ':' || coalesce(exchange_name, id) AS name,
      exchange || ':' || coalesce(exchange_name, id) AS label, exchange_id AS ledgerId FROM contracts WHERE exchange IS NOT NULL`,
    "price",
    { last: "price", funding: "funding_rate" },
  ),
  market_caps: defineKind(
    "market_caps",
    `SELECT s.series AS key, 'cap:' || s.index_id AS id, 'cap:' || s.name AS name, 'cap:' || coalesce(l.label, s.name) AS label, '' AS ledgerId
      FROM series s LEFT JOIN (SELECT id, symbol AS label FROM assets UNION ALL SELECT id, name FROM assets) l ON l.id = s.index_id
      WHERE s.index_type = 'GWA' AND EXISTS (SELECT 1 FROM market_cap_rows r WHERE r.series = s.series)`,
    "market_cap",
    {},
  ),
};

/**
 * `namesSql`: the names of its series, which all contain a colon: key, id, name, a label, and the exchange of its ledger (empty: all
 * exchanges); null: `readNames` has the indices. `figures`: every figure, as SQL over a row.
 */
function defineKind(
  stream: TickStream,
  namesSql: string | null,
  defaultFigure: string,
  aliases: Readonly<Record<string, string>>,
) {
  const columns = rowColumns(stream).filter(({ type }) => type === "decimal" || type === "integer");
  const names = columns.map(({ name }) => name);
  const hasQuote = names.includes("bid") && names.includes("ask");
  const figures = new Map(names.map((name) => [name, name]));
  if (hasQuote) figures.set("mid", "(bid + ask) / 2");
  return { namesSql, defaultFigure, figures, aliases };
}

/** The figure of a series that `of` names. */
export function findFigure(stream: TickStream, name: string, of: string | undefined): string {
  const { defaultFigure, figures, aliases } = seriesKinds[stream];
  const figure = of === undefined ? defaultFigure : (aliases[of] ?? of);
  if (figures.has(figure)) return figure;
  const known = [...figures.keys()];
  throw new Failure(`${name} has no figure ${of}`, {
    code: "usage",
    remedy: suggestWord(figure, known, `give one of ${known.join(", ")}`),
  });
}

/** The figures of a ticker, its price first. */
export function figuresOf(stream: TickStream): readonly string[] {
  const { defaultFigure, figures } = seriesKinds[stream];
  return [...new Set([defaultFigure, ...figures.keys()])];
}

/** SQL: what the rows of a series have as the columns of a tick. */
export function tickColumns({ stream, figure }: { readonly stream: TickStream; readonly figure: string }) {
  const { figures } = seriesKinds[stream];
  return {
    ts: "ts",
    price: figures.get(figure) ?? figure,
    volume: "volume",
    tick_volume: figures.get("tick_volume") ?? "NULL",
    source: rowTables[stream].sourceAt < 0 ? "0" : "source",
    details: "details",
  };
}

/** SQL: FROM the rows of a series, in order of time. */
export function ofSeries(stream: RowStream, condition: string, direction?: "DESC", key = "?"): string {
  return `${unsortedOfSeries(stream, condition, key)} ORDER BY ${timeOrder(stream, direction)}`;
}

/** The same in any order: an earlier state is a union, and SQLite copies each row of an ordered one. */
export function unsortedOfSeries(stream: RowStream, condition: string, key = "?"): string {
  const { table, keyColumn } = rowTables[stream];
  return `FROM ${table} WHERE ${keyColumn} = ${key} AND ${condition}`;
}
