import { parseRecordId, RowIds } from "../../api-server/record-ids.ts";
import type {
  ContractFilter,
  ContractsFilter,
  ExchangeTickersPage,
  SourceState,
} from "../../api-server/source.ts";
import type { Column } from "../../model/column.ts";
import {
  derivativeContractColumns,
  derivativeTickColumns,
  exchangeTickColumns,
  marketCapColumns,
} from "../../model/stream-columns.ts";
import type { DerivativeType } from "../../model/streams.ts";
import { formatShort, type Micros } from "../../model/time.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type LatestRow, readLatestRows } from "./latest-rows.ts";
import { extraProperties, parseDetails, RecordWriter } from "./record-text.ts";

const without = (columns: readonly Column[], omitted: string) =>
  new RecordWriter(columns.filter(({ name }) => name !== omitted));

const tickerWriter = new RecordWriter(exchangeTickColumns);
const liveTickerWriter = without(exchangeTickColumns, "last_moved");

/** The properties of an exchange ticker. The websocket's form has no `lastMoved`. */
export function exchangeTickText(row: LatestRow, isLive = false): string {
  const details = parseDetails(row.details);
  const properties = (isLive ? liveTickerWriter : tickerWriter).properties(row, details);
  return `"id":"${exchangeTickIds(row).at(row.ts)}",${properties},"timestamp":"${formatShort(row.ts)}"${extraProperties(details.extra)}`;
}

type ListingRow = Readonly<Record<string, unknown>> & { readonly key: number };

function exchangeTickIds({ key, exchange_id, market_id }: ListingRow): RowIds {
  return new RowIds(key, "exchange_ticks", String(exchange_id), String(market_id));
}

export function readExchangeTickers(
  connection: Connection,
  now: Micros,
  { exchangeId, marketIds, startAfter, limit }: Parameters<SourceState["exchangeTickers"]>[0],
): ExchangeTickersPage | undefined {
  const after = startAfter === undefined ? -1 : findListing(connection, startAfter);
  if (after === undefined) return undefined;
  const conditions = [
    ...(exchangeId === undefined ? [] : ["s.exchange_id = ?"]),
    ...marketIds.map(() => "s.market_id = ?"),
    "s.listing > ?",
  ];
  const rows = readLatestRows(connection, "exchange_ticks", {
    now,
    condition: conditions.join(" AND "),
    values: [...(exchangeId === undefined ? [] : [exchangeId]), ...marketIds, after],
    limit: limit + 1,
  });
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    records: page.map((row) => `{${exchangeTickText(row)}}`),
    lastId: last && exchangeTickIds(last).at(last.ts),
    hasMore: rows.length > limit,
  };
}

/** The listing whose ticker has this id; undefined: none of this warehouse. */
function findListing(connection: Connection, id: string): number | undefined {
  const position = parseRecordId(id);
  const sql = "SELECT listing AS key, exchange_id, market_id FROM listings WHERE listing = ?";
  const row = position && connection.findRow<ListingRow>(sql, [position.key]);
  return row && exchangeTickIds(row).at(position.number) === id.toLowerCase() ? row.key : undefined;
}

const capWriter = new RecordWriter(marketCapColumns);
/** Rows of earlier versions have the percent changes here. */
const percentChangePattern = /"\w*PercentChange"/;

export function readMarketCaps(
  connection: Connection,
  now: Micros,
  assetId: string | undefined,
  withChanges: boolean,
): string[] {
  const rows = readLatestRows(connection, "market_caps", {
    now,
    condition: assetId === undefined ? "s.index_type = 'GWA'" : "s.index_type = 'GWA' AND s.index_id = ?",
    values: assetId === undefined ? [] : [assetId],
  });
  const rankOf = ({ rank }: LatestRow) => (typeof rank === "number" ? rank : Number.MAX_SAFE_INTEGER);
  return rows
    .toSorted((a, b) => rankOf(a) - rankOf(b) || Number(b.market_cap ?? 0) - Number(a.market_cap ?? 0))
    .map((row) => {
      const details = parseDetails(row.details);
      const id = new RowIds(row.key, "market_caps", String(row.asset_id)).at(row.ts);
      const changes = withChanges ? capWriter.nestedProperties(row, details) : "";
      const extra = extraProperties(details.extra, withChanges ? undefined : percentChangePattern);
      return `{"id":"${id}",${capWriter.properties(row, details)}${changes},"timestamp":"${formatShort(row.ts)}"${extra}}`;
    });
}

type ContractRow = Readonly<Record<string, unknown>> & {
  readonly details: string | null;
  readonly extra: string | null;
};

const contractWriter = without(derivativeContractColumns, "derivative_type");
const derivativeTickWriter = without(derivativeTickColumns, "derivative_type");

function writeContract(row: ContractRow): string {
  return `{${contractWriter.properties(row, parseDetails(row.details))}${extraProperties(row.extra)}}`;
}

const isIncluded: Readonly<Record<ContractFilter, string>> = {
  ACTIVE: "coalesce(expiration > @now, 1)",
  EXPIRED: "coalesce(expiration <= @now, 0)",
  ALL: "@now = @now",
};

export function readContracts(
  connection: Connection,
  now: Micros,
  type: DerivativeType,
  include: ContractFilter,
  { exchangeId, marketId }: ContractsFilter,
): string[] {
  const rows = connection.rows<ContractRow>(
    `SELECT * FROM contracts WHERE derivative_type = @type AND exchange_id = @exchangeId AND is_described = 1
        AND delisted_at IS NULL AND market_id = coalesce(@marketId, market_id) AND ${isIncluded[include]} ORDER BY contract`,
    { type, exchangeId, marketId: marketId ?? null, now },
  );
  return rows.map(writeContract);
}

export function readContract(connection: Connection, type: DerivativeType, id: string): string | undefined {
  const sql = "SELECT * FROM contracts WHERE derivative_type = ? AND id = ? AND is_described = 1";
  const row = connection.findRow<ContractRow>(sql, [type, id]);
  return row && writeContract(row);
}

export function readDerivativeTickers(
  connection: Connection,
  now: Micros,
  type: DerivativeType,
  { exchangeId, marketId, contractId }: ContractsFilter,
): string[] {
  const filters = [
    ["s.derivative_type = ?", type],
    ["s.exchange_id = ?", exchangeId],
    ["s.market_id = ?", marketId],
    ["s.id = ?", contractId],
    ["coalesce(s.expiration > ?, 1)", now],
  ].filter(([, value]) => value !== undefined);
  const rows = readLatestRows(connection, "derivative_ticks", {
    now,
    condition: filters.map(([sql]) => sql).join(" AND "),
    values: filters.map(([, value]) => value),
  });
  return rows.map((row) => {
    const details = parseDetails(row.details);
    const id = new RowIds(row.key, "derivative_ticks", type, String(row.contract_id)).at(row.ts);
    return `{"id":"${id}",${derivativeTickWriter.properties(row, details)},"timestamp":"${formatShort(row.ts)}"${extraProperties(details.extra)}}`;
  });
}
