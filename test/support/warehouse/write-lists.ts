import type { StreamRecords } from "../../../src/model/records.ts";
import { planContracts, planList, writeList } from "../../../src/warehouse/lookups/lookup-writer.ts";
import { planService, writeService } from "../../../src/warehouse/lookups/service-identity.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";

/* Lists, read, decided and written at once. */

type OfContracts = Parameters<typeof planContracts>;

export function writeLookup<S extends "assets" | "markets" | "exchanges">(
  transaction: Transaction,
  stream: S,
  list: readonly StreamRecords[S][],
  options: Parameters<typeof planList>[3],
) {
  return writeList(transaction, planList(transaction, stream, list, options));
}

export function writeContracts(transaction: Transaction, list: OfContracts[1], options: OfContracts[2]) {
  return writeList(transaction, planContracts(transaction, list, options));
}

export function recordService(
  transaction: Transaction,
  path: string,
  list: Parameters<typeof planService>[2],
) {
  return writeService(transaction, planService(transaction, path, list));
}
