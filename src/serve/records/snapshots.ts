import { createRowIds, parseRecordId } from "../../api-server/record-ids.ts";
import type { ContractFilter, ContractsFilter, SourceState } from "../../api-server/source.ts";
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
import { parseRowDetails } from "../../warehouse/tables/row-tables.ts";
import { conditionsOf, type LatestRow, readLatestRows } from "./latest-rows.ts";
import { extraProperties, RecordWriter } from "./record-text.ts";

const without = (columns: readonly Column[], omitted: string) =>
  new RecordWriter(columns.filter(({ name }) => name !== omitted));

/** The properties of a record. `ids`: those of its series; `withNested`: with its nested objects. */
function writeProperties(
  idAt: (ts: Micros) => string,
  writer: RecordWriter,
  row: LatestRow,
  withNested = false,
): string {
  const details = parseRowDetails(row.details);
  const nested = withNested ? writer.nestedProperties(row, details) : "";
  const extra = extraProperties(details.extra);
  return `"id":"${idAt(row.ts)}",${writer.properties(row, details)}${nested},"timestamp":"${formatShort(row.ts)}"${extra}`;
}

const capWriter = new RecordWriter(marketCapColumns);
const contractWriter = without(derivativeContractColumns, "derivative_type");
const derivativeTickWriter = without(derivativeTickColumns, "derivative_type");
const tickerWriter = new RecordWriter(exchangeTickColumns);
const liveTickerWriter = without(exchangeTickColumns, "last_moved");

/** The properties of an exchange ticker. The websocket's form has no `lastMoved`. */
export function exchangeTickText(row: LatestRow, isLive = false): string {
  return writeProperties(exchangeTickIds(row), isLive ? liveTickerWriter : tickerWriter, row);
}

type ListingRow = Readonly<Record<string, unknown>> & { readonly key: number };

function exchangeTickIds({ key, exchange_id, market_id }: ListingRow) {
  return createRowIds(key, "exchange_ticks", String(exchange_id), String(market_id));
}

type ContractRow = Readonly<Record<string, unknown>> & {
  readonly details: string | null;
  readonly extra: string | null;
};

const isIncluded: Readonly<Record<ContractFilter, string>> = {
  ACTIVE: "coalesce(s.expiration > ?, 1)",
  EXPIRED: "coalesce(s.expiration <= ?, 0)",
  ALL: "? > 0",
};

/** Conditions on a contract `s`, with their values. */
function selectContracts(
  now: Micros,
  type: DerivativeType,
  include: ContractFilter,
  { exchangeId, marketId, contractId }: ContractsFilter,
) {
  return conditionsOf([
    ["s.derivative_type = ?", type],
    ["s.exchange_id = ?", exchangeId],
    ["s.market_id = ?", marketId],
    ["s.id = ?", contractId],
    [isIncluded[include], now],
  ]);
}

type Snapshots = "findListing" | "exchangeTickers" | "marketCaps" | "contracts" | "derivativeTickers";

/** The newest rows of a warehouse as the API serves them. */
export function snapshotReaders(connection: Connection, now: Micros): Pick<SourceState, Snapshots> {
  return {
    findListing(id) {
      const sql = "SELECT listing AS key, exchange_id, market_id FROM listings WHERE listing = ?";
      return parseRecordId(id, ({ key, number }) => {
        const row = connection.findRow<ListingRow>(sql, [key]);
        return row && exchangeTickIds(row)(number);
      })?.key;
    },
    exchangeTickers({ exchangeId, marketIds, firstKey, limit }) {
      const selected = conditionsOf([
        ["s.exchange_id = ?", exchangeId],
        ...marketIds.map((id) => ["s.market_id = ?", id] as const),
        ["s.listing >= ?", firstKey],
      ]);
      return readLatestRows(connection, "exchange_ticks", { now, ...selected, limit }).map((row) => ({
        id: exchangeTickIds(row)(row.ts),
        text: `{${exchangeTickText(row)}}`,
      }));
    },
    marketCaps(assetId, withChanges) {
      const selected = conditionsOf([
        ["s.index_type = ?", "GWA"],
        ["s.index_id = ?", assetId],
      ]);
      const rows = readLatestRows(connection, "market_caps", { now, ...selected });
      const rankOf = ({ rank }: LatestRow) => (typeof rank === "number" ? rank : Number.MAX_SAFE_INTEGER);
      return rows
        .toSorted((a, b) => rankOf(a) - rankOf(b) || Number(b.market_cap ?? 0) - Number(a.market_cap ?? 0))
        .map((row) => {
          const ids = createRowIds(row.key, "market_caps", String(row.asset_id));
          return `{${writeProperties(ids, capWriter, row, withChanges)}}`;
        });
    },
    contracts(type, include, filter) {
      const { condition, values } = selectContracts(now, type, include, filter);
      const isListed = filter.contractId === undefined ? "s.delisted_at IS NULL" : "1";
      const sql = `SELECT * FROM contracts s WHERE s.is_described = 1 AND ${isListed} AND ${condition} ORDER BY s.contract`;
      return connection.rows<ContractRow>(sql, values).map((row) => {
        const properties = contractWriter.properties(row, parseRowDetails(row.details));
        return `{${properties}${extraProperties(row.extra)}}`;
      });
    },
    derivativeTickers(type, filter) {
      const selected = selectContracts(now, type, "ACTIVE", filter);
      return readLatestRows(connection, "derivative_ticks", { now, ...selected }).map((row) => {
        const ids = createRowIds(row.key, "derivative_ticks", type, String(row.contract_id));
        return `{${writeProperties(ids, derivativeTickWriter, row)}}`;
      });
    },
  };
}
