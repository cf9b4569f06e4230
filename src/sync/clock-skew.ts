import { MICROS_PER_MS, MICROS_PER_SECOND } from "../model/instant.ts";
import type { Connection } from "../warehouse/connection.ts";
import { clockSkew } from "../warehouse/wanted.ts";
import type { Intake } from "./intake.ts";

/** The service's clock is known to about a second: less than this is no news. */
const NEWS = 2 * MICROS_PER_SECOND;

/**
 * Keeps in the warehouse how this machine's clock differs from the service's. Views add it to SQLite's own clock, so a
 * clock that was stepped makes them wrong until it is noted.
 */
export async function keepClockSkew(
  { client, ingest, signal }: Pick<Intake, "client" | "ingest" | "signal">,
  reader: Connection,
): Promise<void> {
  const { skewMs } = client.health();
  if (skewMs === undefined) return;
  const skew = -skewMs * MICROS_PER_MS;
  if (Math.abs(skew - clockSkew(reader)) > NEWS) await ingest.call("commitClockSkew", skew, [], signal);
}
