import type { Column } from "../../model/column.ts";
import { exchangeTickColumns, marketCapColumns } from "../../model/stream-columns.ts";
import { MAX_PAGE_SIZE } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type LatestRow, readLatestRows } from "./latest-rows.ts";
import { assertKnown } from "./lookups.ts";
import { ParamReader } from "./param-reader.ts";
import { parseRecordId, RowIds } from "./record-ids.ts";
import { extraProperties, parseDetails, RecordWriter, timestampText } from "./record-text.ts";
import { ServeError } from "./serve-error.ts";
import { listResponse, type ServeResponse } from "./serve-response.ts";

const tickerColumns: readonly Column[] = exchangeTickColumns;
const tickerWriter = new RecordWriter(tickerColumns);
const liveTickerWriter = new RecordWriter(tickerColumns.filter(({ name }) => name !== "last_moved"));

/** The properties of an exchange ticker after its id. The websocket's form has no `lastMoved`. */
export function exchangeTickText(row: LatestRow, isLive = false): string {
  const details = parseDetails(row.details);
  const properties = (isLive ? liveTickerWriter : tickerWriter).properties(row, details);
  return `${properties},"timestamp":"${timestampText(row.ts)}"${extraProperties(details.extra)}`;
}

function exchangeTickIds(row: LatestRow): RowIds {
  return new RowIds("exchange_ticks", row.key, String(row.exchange_id), String(row.market_id));
}

/** Answers `/exchange-ticker`. More than a page of tickers is paginated. */
export function serveExchangeTickers(
  connection: Connection,
  query: URLSearchParams,
  now: Micros,
): ServeResponse {
  const params = new ParamReader("exchange-ticker", query);
  const exchangeId = params.text("exchangeId");
  const marketId = params.text("marketId");
  const baseSymbol = params.text("baseSymbol");
  const quoteSymbol = params.text("quoteSymbol");
  const startAfter = params.text("startAfter");
  if (baseSymbol !== undefined && quoteSymbol === undefined)
    params.reject("quoteSymbol", "", "is required with baseSymbol");
  if (quoteSymbol !== undefined && baseSymbol === undefined)
    params.reject("baseSymbol", "", "is required with quoteSymbol");
  params.finish();
  assertKnown(connection, "exchange", exchangeId);
  assertKnown(connection, "market", marketId);
  const markets =
    baseSymbol !== undefined && quoteSymbol !== undefined
      ? [findMarket(connection, baseSymbol, quoteSymbol)]
      : [];
  if (marketId !== undefined) markets.push(marketId);
  const position = startAfter === undefined ? undefined : parseRecordId(startAfter);
  if (startAfter !== undefined && position === undefined)
    throw new ServeError(404, `No record ${startAfter}`);
  const conditions = [
    ...(exchangeId === undefined ? [] : ["s.exchange_id = ?"]),
    ...markets.map(() => "s.market_id = ?"),
    "s.listing > ?",
  ];
  const rows = readLatestRows(connection, "exchange_ticks", {
    now,
    condition: conditions.join(" AND "),
    values: [...(exchangeId === undefined ? [] : [exchangeId]), ...markets, position?.key ?? -1],
    limit: MAX_PAGE_SIZE + 1,
  });
  const page = rows.slice(0, MAX_PAGE_SIZE);
  const last = page.at(-1);
  const nextId = rows.length > MAX_PAGE_SIZE && last ? exchangeTickIds(last).at(last.ts) : null;
  const records = page.map((row) => `{"id":"${exchangeTickIds(row).at(row.ts)}",${exchangeTickText(row)}}`);
  return listResponse(records, { nextId });
}

/** The market of a pair. Throws 404 if there is none, 400 if two share the symbols. */
function findMarket(connection: Connection, base: string, quote: string): string {
  const sql = `SELECT m.id FROM market_rows m JOIN assets b ON b.id = m.base_asset_id JOIN assets q ON q.id = m.quote_asset_id
    WHERE b.symbol = ? AND q.symbol = ? AND m.delisted_at IS NULL`;
  const [first, ...others] = connection.values<string>(sql, [base, quote]);
  if (first === undefined) throw new ServeError(404, `No market ${base}/${quote}`);
  if (others.length > 0)
    throw new ServeError(400, `Duplicate symbols: ${others.length + 1} markets are ${base}/${quote}`);
  return first;
}

const capWriter = new RecordWriter(marketCapColumns);
/** Rows of earlier versions have the percent changes here. */
const percentChangePattern = /"\w*PercentChange"/;

/** Answers `/market-cap`. */
export function serveMarketCaps(connection: Connection, query: URLSearchParams, now: Micros): ServeResponse {
  const params = new ParamReader("market-cap", query);
  const assetId = params.text("assetId");
  const hasChanges = params.flag("percentChange");
  params.finish();
  assertKnown(connection, "asset", assetId);
  const rows = readLatestRows(connection, "market_caps", {
    now,
    condition: assetId === undefined ? "s.index_type = 'GWA'" : "s.index_type = 'GWA' AND s.index_id = ?",
    values: assetId === undefined ? [] : [assetId],
  });
  const rankOf = ({ rank }: LatestRow) => (typeof rank === "number" ? rank : Number.MAX_SAFE_INTEGER);
  const records = rows
    .toSorted((a, b) => rankOf(a) - rankOf(b) || Number(b.market_cap ?? 0) - Number(a.market_cap ?? 0))
    .map((row) => {
      const details = parseDetails(row.details);
      const id = new RowIds("market_caps", row.key, String(row.asset_id)).at(row.ts);
      const changes = hasChanges ? capWriter.nestedProperties(row, details) : "";
      const extra = extraProperties(details.extra, hasChanges ? undefined : percentChangePattern);
      return `{"id":"${id}",${capWriter.properties(row, details)}${changes},"timestamp":"${timestampText(row.ts)}"${extra}}`;
    });
  return listResponse(records);
}
