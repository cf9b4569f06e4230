import { type Body, decodeBody } from "../model/body.ts";
import type { Reject, StreamRecords, UnknownField } from "../model/records.ts";
import { writeAssets, writeContracts, writeExchanges, writeMarkets } from "../warehouse/lookups.ts";
import { countUnknownFields, keepRejects } from "../warehouse/oddities.ts";
import type { Reconciled } from "../warehouse/reconcile.ts";
import type { Transaction } from "../warehouse/transaction.ts";
import type { Warehouse } from "../warehouse/warehouse.ts";
import { decodePage } from "./decode-page.ts";

/** A whole list of the service, as it was asked for. */
export type LookupList = (
  | { readonly stream: "assets" | "markets" | "exchanges" }
  | { readonly stream: "derivative_contracts"; readonly derivativeType: string; readonly exchangeId: string }
) & {
  /** The request without secrets, for `rejects`. */
  readonly request: string;
};

export interface LookupCommit extends Reconciled {
  readonly listed: number;
  readonly rejected: number;
}

/** All pages of one list, one transaction: only a whole list can tell what is no longer on it. */
export function commitLookup(warehouse: Warehouse, list: LookupList, bodies: readonly Body[]): LookupCommit {
  const { records, rejects, unknownFields } = readList(list, bodies);
  // A record that could not be read is still listed: what the list seems to lack proves nothing then.
  const complete = rejects.length === 0;
  return warehouse.transaction((transaction) => {
    keepRejects(transaction, list.stream, rejects, list.request);
    countUnknownFields(transaction, list.stream, unknownFields);
    const reconciled = write(transaction, list, records, complete);
    return { ...reconciled, listed: records.length, rejected: rejects.length };
  });
}

type LookupRecord = StreamRecords["assets" | "markets" | "exchanges" | "derivative_contracts"];

function readList(list: LookupList, bodies: readonly Body[]) {
  const context = "derivativeType" in list ? { derivativeType: list.derivativeType } : {};
  const byId = new Map<string, LookupRecord>();
  const rejects: Reject[] = [];
  const unknownFields: UnknownField[] = [];
  for (const body of bodies) {
    const page = decodePage(list.stream, decodeBody(body), context);
    for (const record of page.records) byId.set(record.id, record);
    rejects.push(...page.rejects);
    unknownFields.push(...page.unknownFields);
  }
  return { records: [...byId.values()], rejects, unknownFields };
}

function write(
  transaction: Transaction,
  list: LookupList,
  records: readonly LookupRecord[],
  complete: boolean,
): Reconciled {
  switch (list.stream) {
    case "assets":
      return writeAssets(transaction, records as StreamRecords["assets"][], { complete });
    case "markets":
      return writeMarkets(transaction, records as StreamRecords["markets"][], { complete });
    case "exchanges":
      return writeExchanges(transaction, records as StreamRecords["exchanges"][], { complete });
    case "derivative_contracts": {
      const { derivativeType, exchangeId } = list;
      const contracts = records as StreamRecords["derivative_contracts"][];
      return writeContracts(transaction, contracts, { complete, derivativeType, exchangeId });
    }
  }
}
