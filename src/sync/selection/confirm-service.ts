import { failureCode } from "../../model/failure.ts";
import type { Random } from "../../runtime/backoff.ts";
import { withTimeout } from "../../runtime/timeouts.ts";
import { readServiceIdentity } from "../../warehouse/lookups/service-identity.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SyncContext } from "../context/context.ts";
import { retryUntilDone } from "../context/retry.ts";
import { withWholeList } from "../fetch/lookups.ts";

interface ConfirmServiceOptions {
  readonly reader: Connection;
  readonly random: Random;
  /** Whether the operator lets the warehouse change to another service. */
  readonly mayAdopt: boolean;
  /** Whether to compare the assets at the known address too; the first refresh of the lookups does that anyway. */
  readonly checksKnownAddress: boolean;
}

/** The live feed must not wait longer for REST, if the address is the known one. */
const KNOWN_ADDRESS_TIMEOUT_MS = 5_000;

/**
 * Compares the service with the one that the warehouse belongs to, before anything is stored. Throws `other_service` if it
 * is another one. At a new address nothing goes on until the service has listed its assets.
 */
export async function confirmService(context: SyncContext, options: ConfirmServiceOptions): Promise<void> {
  const { client, clock, log, signal } = context;
  const known = readServiceIdentity(options.reader, "assets");
  if (known.ids.size === 0) return;
  const { mayAdopt } = options;
  const compare = async (until: AbortSignal) => {
    const bounded = { ...context, signal: until };
    const change = await withWholeList(bounded, "assets", (reader) =>
      context.ingest.call("commitService", { serviceUrl: client.address, reader, mayAdopt }, until),
    );
    const addresses = { from: known.url, to: client.address };
    if (change === "moved") log.info(addresses, "service address changed");
    if (change === "adopted") log.warn(addresses, "warehouse adopted another service");
  };
  if (known.url !== client.address || mayAdopt)
    return retryUntilDone(context, options.random, () => compare(signal));
  if (!options.checksKnownAddress) return;
  try {
    await withTimeout({ clock, ms: KNOWN_ADDRESS_TIMEOUT_MS, stopping: signal }, compare);
  } catch (error) {
    // Whatever else failed: the address is right, and the other requests report and retry it.
    if (failureCode(error) === "other_service" || signal.aborted) throw error;
  }
}
