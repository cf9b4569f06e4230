import type { Reject, StreamRecords, UnknownField } from "../../model/records.ts";
import type { ListWorth, Reconciled } from "../../warehouse/lookups/list-diff.ts";
import {
  writeAssets,
  writeContracts,
  writeExchanges,
  writeMarkets,
} from "../../warehouse/lookups/lookup-writer.ts";
import { countUnknownFields, keepRejects } from "../../warehouse/rows/rejects.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { Warehouse } from "../../warehouse/writer.ts";
import type { HeldPages } from "../decode/pending-pages.ts";

/** All pages of a list of the service, read before. */
export type LookupList = (
  | { readonly stream: "assets" | "markets" | "exchanges" }
  | { readonly stream: "derivative_contracts"; readonly derivativeType: string; readonly exchangeId: string }
) & {
  readonly held: readonly number[];
  /** The request without secrets, for `rejects`. */
  readonly request: string;
};

export interface LookupCommit extends Reconciled {
  readonly listed: number;
  readonly rejected: number;
}

/** All pages of one list, one transaction: only a whole list can tell what is no longer on it. */
export function commitLookup(warehouse: Warehouse, pages: HeldPages, list: LookupList): LookupCommit {
  const { records, rejects, unknownFields, isKept } = readList(pages, list);
  // A record that could not be read is still listed: what the list seems to lack proves nothing then.
  const worth = { complete: rejects.length === 0, isKept };
  return warehouse.transaction((transaction) => {
    keepRejects(transaction, list.stream, rejects, list.request);
    countUnknownFields(transaction, list.stream, unknownFields);
    const reconciled = write(transaction, list, records, worth);
    return { ...reconciled, listed: records.length, rejected: rejects.length };
  });
}

type LookupRecord = StreamRecords["assets" | "markets" | "exchanges" | "derivative_contracts"];

function readList(pages: HeldPages, list: LookupList) {
  const byId = new Map<string, LookupRecord>();
  const rejects: Reject[] = [];
  const unknownFields: UnknownField[] = [];
  let isKept = false;
  for (const held of list.held) {
    const page = pages.get(list.stream, held);
    for (const record of page.records) byId.set(record.id, record);
    rejects.push(...page.rejects);
    isKept ||= page.isKept;
    unknownFields.push(...page.unknownFields);
  }
  return { records: [...byId.values()], rejects, unknownFields, isKept };
}

function write(
  transaction: Transaction,
  list: LookupList,
  records: readonly LookupRecord[],
  worth: ListWorth,
): Reconciled {
  switch (list.stream) {
    case "assets":
      return writeAssets(transaction, records as StreamRecords["assets"][], worth);
    case "markets":
      return writeMarkets(transaction, records as StreamRecords["markets"][], worth);
    case "exchanges":
      return writeExchanges(transaction, records as StreamRecords["exchanges"][], worth);
    case "derivative_contracts": {
      const { derivativeType, exchangeId } = list;
      const contracts = records as StreamRecords["derivative_contracts"][];
      return writeContracts(transaction, contracts, { ...worth, derivativeType, exchangeId });
    }
  }
}
