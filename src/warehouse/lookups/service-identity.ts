import { Failure } from "../../model/failure.ts";
import type { SqlRunner } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";
import { lookupTables } from "./lookup-writer.ts";

/** A list that distinguishes a service from another one. Contracts come and go too fast for that. */
export type IdentifyingStream = "assets" | "markets" | "exchanges";

/**
 * Which service the data of a warehouse is from: its REST address, or null, and the ids of everything that its list has contained;
 * without any the warehouse takes every service.
 */
export function readServiceIdentity(connection: SqlRunner, stream: IdentifyingStream) {
  const ids = connection.values<string>("SELECT id FROM service_ids WHERE stream = ?", [stream]);
  return { url: readServiceUrl(connection), ids: new Set(ids) };
}

export function readServiceUrl(connection: SqlRunner): string | null {
  return connection.value<string | null>("SELECT service_url FROM warehouse_state");
}

export function countShared(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  return [...a].filter((id) => b.has(id)).length;
}

/**
 * Whether two lists of ids are of the same service: they share at least half of the shorter one. A service adds entries, and
 * a list may be incomplete, so neither must contain the other. An empty list fits every service.
 */
export function isSameService(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return countShared(a, b) * 2 >= Math.min(a.size, b.size);
}

interface ServiceList {
  readonly url: string;
  readonly stream: IdentifyingStream;
  /** The ids on its list. */
  readonly ids: readonly string[];
  /** Whether the operator lets the warehouse change to another service. */
  readonly mayAdopt?: boolean;
}

/** What `writeService` changes. */
export type ServiceChange = "none" | "moved" | "adopted";

export type ServicePlan = ReturnType<typeof planService>;

/**
 * Compares the service with that of the warehouse. Throws if the data of another one is already stored: the ids of both, and
 * two series of each name, would be mixed for ever.
 */
export function planService(
  transaction: Transaction,
  warehouse: string,
  { url, stream, ids, mayAdopt = false }: ServiceList,
) {
  const known = readServiceIdentity(transaction, stream);
  const listed = new Set(ids);
  const isSame = isSameService(known.ids, listed);
  if (!isSame && !mayAdopt) {
    const shared = countShared(known.ids, listed);
    throw otherServiceFailure(warehouse, known.url, {
      url,
      evidence: `it lists ${shared} of ${known.ids.size} known ${stream}`,
    });
  }
  /** The ids of which the warehouse does not know. */
  const added = [...listed].filter((id) => !isSame || !known.ids.has(id));
  const change: ServiceChange = !isSame ? "adopted" : known.url === url ? "none" : "moved";
  return { url, stream, added, change };
}

export function writeService(transaction: Transaction, { url, stream, added, change }: ServicePlan) {
  if (change === "adopted") forgetService(transaction);
  const insert = transaction.statement("INSERT INTO service_ids (stream, id) VALUES (?, ?)");
  for (const id of added) insert.run([stream, id]);
  if (change !== "none") transaction.run("UPDATE warehouse_state SET service_url = ?", [url]);
  return change;
}

/** The new service does not list what the old one listed: that is no fault of its lists. */
function forgetService(transaction: Transaction): void {
  transaction.run("DELETE FROM service_ids");
  const now = transaction.stamp();
  for (const { entity, table, keys } of lookupTables) {
    transaction.run(
      `INSERT INTO status_changes (entity, id, field, new, seen_at)
        SELECT ?, ${keys.join(" || '/' || ")}, 'delisted_at', ?, ? FROM ${table} WHERE delisted_at IS NULL`,
      [entity, now, now],
    );
    transaction.run(`UPDATE ${table} SET delisted_at = ? WHERE delisted_at IS NULL`, [now]);
  }
}

export function otherServiceFailure(
  warehouse: string,
  knownUrl: string | null,
  { url, evidence }: { readonly url: string; readonly evidence: string },
): Failure {
  const origin = knownUrl ?? "an earlier service";
  const which = knownUrl === url ? "another service now answers there" : `${url} is another one`;
  return new Failure(`${warehouse} has the data of ${origin}, and ${which} (${evidence})`, {
    code: "other_service",
    remedy:
      "set service.baseUrl to that service, or warehouse.path to another file; --adopt moves the warehouse on purpose",
  });
}
