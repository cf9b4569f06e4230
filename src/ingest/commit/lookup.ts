import { Failure } from "../../model/failure.ts";
import type { StreamRecords } from "../../model/records.ts";
import { type ListPlan, planContracts, planList, writeList } from "../../warehouse/lookups/lookup-writer.ts";
import type { ReconcileOptions } from "../../warehouse/lookups/reconcile-lookup.ts";
import {
  type IdentifyingStream,
  planService,
  type ServiceChange,
  type ServicePlan,
  writeService,
} from "../../warehouse/lookups/service-identity.ts";
import { countUnknownFields, storeRejects } from "../../warehouse/rows/rejects.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";
import type { Page } from "../decode/read-page.ts";

export type LookupList = (
  | {
      readonly stream: IdentifyingStream;
      /** The address of the service, to check that the warehouse belongs to it. */
      readonly serviceUrl: string;
    }
  | { readonly stream: "derivative_contracts"; readonly derivativeType: string; readonly exchangeId: string }
) & {
  /** The request without secrets, for `rejects`. */
  readonly request: string;
};

export type LookupCommitResult = ReturnType<typeof commitLookup>;

/** Commits all pages of a lookup in one transaction: only the whole list shows what is no longer on it. */
export function commitLookup(
  warehouse: WarehouseWriter,
  pages: readonly Page<LookupList["stream"]>[],
  list: LookupList,
) {
  const { records, rejects, unknownFields, isStale } = collectRecords(pages);
  // An unreadable record is still listed, so with rejects a missing id does not mean a removed one.
  const reconcileOptions = { isComplete: rejects.length === 0, isStale };
  return warehouse.transaction((transaction) => {
    const { service, lists } = planAll(transaction, warehouse.path, records, list, reconcileOptions);
    if (service) writeService(transaction, service);
    storeRejects(transaction, list.stream, rejects, list.request);
    countUnknownFields(transaction, list.stream, unknownFields);
    return { ...writeList(transaction, lists), listed: records.length, rejected: rejects.length };
  });
}

function planAll(
  transaction: Transaction,
  path: string,
  records: readonly LookupRecord[],
  list: LookupList,
  options: ReconcileOptions,
): { readonly service: ServicePlan | undefined; readonly lists: ListPlan } {
  if (list.stream === "derivative_contracts") {
    const { derivativeType, exchangeId } = list;
    const contracts = records as StreamRecords["derivative_contracts"][];
    const scoped = { ...options, derivativeType, exchangeId };
    return { service: undefined, lists: planContracts(transaction, contracts, scoped) };
  }
  const { stream, serviceUrl: url } = list;
  const entries = records as StreamRecords[IdentifyingStream][];
  return {
    service: planService(transaction, path, { stream, url, ids: records.map(({ id }) => id) }),
    lists: planList(transaction, stream, entries, options),
  };
}

export interface Service {
  readonly serviceUrl: string;
  readonly mayAdopt: boolean;
}

/** Checks that the warehouse belongs to the service, before anything else is stored, and stores where it is now. */
export function commitService(
  warehouse: WarehouseWriter,
  assets: readonly Page<"assets">[],
  { serviceUrl: url, mayAdopt }: Service,
): ServiceChange {
  const ids = assets.flatMap(({ records }) => records.map(({ id }) => id));
  if (ids.length === 0) {
    throw new Failure(`${url} lists no assets: it may not be the service of this warehouse`, {
      code: "doubtful_list",
      remedy: "check service.baseUrl; nothing is stored until the service lists its assets",
    });
  }
  return warehouse.transaction((transaction) =>
    writeService(
      transaction,
      planService(transaction, warehouse.path, { stream: "assets", url, ids, mayAdopt }),
    ),
  );
}

type LookupRecord = StreamRecords[LookupList["stream"]];

function collectRecords(pages: readonly Page<LookupList["stream"]>[]) {
  const byId = new Map(pages.flatMap(({ records }) => records.map((record) => [record.id, record] as const)));
  return {
    records: [...byId.values()],
    rejects: pages.flatMap(({ rejects }) => rejects),
    unknownFields: pages.flatMap(({ unknownFields }) => unknownFields),
    isStale: pages.some(({ isFromCache }) => isFromCache),
  };
}
