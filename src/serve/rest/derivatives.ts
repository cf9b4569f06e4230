import { derivativeContractColumns, derivativeTickColumns } from "../../model/stream-columns.ts";
import { type DerivativeType, derivativeTypes } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { readLatestRows } from "./latest-rows.ts";
import { assertKnown } from "./lookups.ts";
import { ParamReader } from "./param-reader.ts";
import { RowIds } from "./record-ids.ts";
import { extraProperties, parseDetails, RecordWriter, timestampText } from "./record-text.ts";
import { ServeError } from "./serve-error.ts";
import { listResponse, type ServeResponse } from "./serve-response.ts";

type ContractRow = Readonly<Record<string, unknown>> & {
  readonly details: string | null;
  readonly extra: string | null;
};

const withoutType = ({ name }: { readonly name: string }) => name !== "derivative_type";
const contractWriter = new RecordWriter(derivativeContractColumns.filter(withoutType));
const tickWriter = new RecordWriter(derivativeTickColumns.filter(withoutType));

function writeContract(row: ContractRow): string {
  return `{${contractWriter.properties(row, parseDetails(row.details))}${extraProperties(row.extra)}}`;
}

function readType(params: ParamReader, type: string): DerivativeType {
  const known = derivativeTypes.find((name) => name === type);
  if (known === undefined)
    params.reject("derivativeType", type, `must be one of ${derivativeTypes.join(", ")}`);
  return known ?? "futures";
}

/** Answers `/derivatives/contract/{derivativeType}`. */
export function serveContracts(
  connection: Connection,
  typeText: string,
  query: URLSearchParams,
  now: Micros,
): ServeResponse {
  const params = new ParamReader("derivative-contract", query);
  const type = readType(params, typeText);
  const exchangeId = params.required("exchangeId");
  const marketId = params.text("marketId");
  const include = params.oneOf("include", ["ACTIVE", "ALL", "EXPIRED"]) ?? "ACTIVE";
  params.finish();
  assertKnown(connection, "exchange", exchangeId);
  const state = {
    ACTIVE: "coalesce(expiration > @now, 1)",
    EXPIRED: "coalesce(expiration <= @now, 0)",
    ALL: "@now = @now",
  }[include];
  const rows = connection.rows<ContractRow>(
    `SELECT * FROM contracts WHERE derivative_type = @type AND exchange_id = @exchangeId AND is_described = 1
        AND delisted_at IS NULL AND market_id = coalesce(@marketId, market_id) AND ${state} ORDER BY contract`,
    { type, exchangeId, marketId: marketId ?? null, now },
  );
  return listResponse(rows.map(writeContract));
}

/** Answers `/derivatives/contract/{derivativeType}/{id}`. */
export function serveContract(connection: Connection, typeText: string, id: string): ServeResponse {
  const params = new ParamReader("derivative-contract", new URLSearchParams());
  const type = readType(params, typeText);
  params.finish();
  const sql = "SELECT * FROM contracts WHERE derivative_type = ? AND id = ? AND is_described = 1";
  const row = connection.findRow<ContractRow>(sql, [type, id]);
  if (!row) throw new ServeError(404, `No contract ${id}`);
  return { body: writeContract(row), headers: {} };
}

/** Answers `/derivatives/ticker/{derivativeType}`. */
export function serveDerivativeTickers(
  connection: Connection,
  typeText: string,
  query: URLSearchParams,
  now: Micros,
): ServeResponse {
  const params = new ParamReader("derivative-ticker", query);
  const type = readType(params, typeText);
  const exchangeId = params.required("exchangeId");
  const marketId = params.text("marketId");
  const contractId = params.text("contractId");
  params.finish();
  assertKnown(connection, "exchange", exchangeId);
  if (contractId !== undefined) serveContract(connection, type, contractId);
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
  const records = rows.map((row) => {
    const details = parseDetails(row.details);
    const id = new RowIds("derivative_ticks", row.key, type, String(row.contract_id)).at(row.ts);
    return `{"id":"${id}",${tickWriter.properties(row, details)},"timestamp":"${timestampText(row.ts)}"${extraProperties(details.extra)}}`;
  });
  return listResponse(records);
}
