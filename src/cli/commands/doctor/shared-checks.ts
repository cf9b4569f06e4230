import {
  findSharedSettings,
  type LoadedSettings,
  type SharedSettings,
} from "../../../config/load-settings.ts";
import { type ExitCode, exitCode } from "../../../model/failure.ts";
import { isLoopback } from "../../../model/service-url.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { inspectServer, type ServerInspection } from "../../../share/server/inspect.ts";
import { foreignSchemaFailure, pooledFailure } from "../../../share/server/postgres-errors.ts";
import { Check, type Finding } from "./finding.ts";

const check = new Check("shared");

/** Reachability, version, rights, TLS and durability of the shared warehouse; nothing if there is none. */
export async function checkSharedWarehouse(loaded: LoadedSettings, clock: Clock): Promise<Finding[]> {
  const shared = findSharedSettings(loaded);
  if (!shared) return [];
  try {
    const server = await inspectServer({ ...shared, clock });
    return [...judge(server), describeRole(shared, server)];
  } catch (error) {
    return [check.failure(error)];
  }
}

/** A daemon in role `alone` beside another would wait for ever. */
function describeRole({ role, name }: SharedSettings, { forwardedBy }: ServerInspection): Finding {
  const message = `role ${role}, name ${name}; forwarded by ${forwardedBy ?? "nobody"} now`;
  if (role !== "alone" || forwardedBy === undefined || forwardedBy === name) return check.ok(message);
  return check.warning(message, "set shared.role to pair in both daemons, or stop the other one");
}

function describeSchema({ schemaVersion, hasSchema }: ServerInspection): string {
  if (schemaVersion !== undefined) return `schema mds has version ${schemaVersion}`;
  return hasSchema
    ? "schema mds has no tables of mds-sync that can be read"
    : "schema mds is created by the first run";
}

function judge(found: ServerInspection): Finding[] {
  const { address, version, schemaVersion = 0, knownSchemaVersion, synchronousCommit, server } = found;
  const { host, port } = server;
  const { user, database, tls } = address;
  const place = `PostgreSQL ${version} at ${host}:${port}/${database}`;
  const problem = (message: string, remedy: string, exit: ExitCode = exitCode.usage) =>
    check.problem(message, remedy, exit);
  const all: (Finding | false)[] = [
    check.ok(`${place} answers; ${describeSchema(found)}`),
    found.isTooOld && problem(`${place} is too old`, "PostgreSQL 14 or newer is needed"),
    schemaVersion > knownSchemaVersion &&
      problem(
        `schema mds was written by a newer mds-sync (${schemaVersion})`,
        "install that version here too",
      ),
    found.foreignRelations.length > 0 && check.failure(foreignSchemaFailure(server, found.foreignRelations)),
    found.isPooled && check.failure(pooledFailure(server)),
    !found.hasRights &&
      found.hasSchema &&
      problem(
        `user ${user} may not create tables in schema mds, or does not own those of mds-sync`,
        `make it the owner: ALTER SCHEMA mds OWNER TO "${user}", and REASSIGN OWNED for what is in it`,
      ),
    !found.hasRights &&
      !found.hasSchema &&
      problem(
        `user ${user} may not create schema mds`,
        `GRANT CREATE ON DATABASE "${database}" TO "${user}"`,
      ),
    found.isReadOnly &&
      problem(
        "the server accepts no writes: it is a standby, or default_transaction_read_only is on",
        "let shared.url name the primary (too), or reset that setting of the user",
        exitCode.tryLater,
      ),
    !found.isEncrypted &&
      tls === "off" &&
      !isLoopback({ hostname: host }) &&
      check.warning("the connection is not encrypted", "set sslmode=verify-full in shared.url"),
    tls === "unverified" &&
      check.warning(
        "the server's certificate is not verified",
        "set sslmode=verify-full in shared.url, and sslrootcert if its authority is private",
      ),
    (synchronousCommit === "off" || !found.hasFsync) &&
      check.warning(
        `a crash of the server may lose its last commits (synchronous_commit ${synchronousCommit}, fsync ${found.hasFsync ? "on" : "off"})`,
        "the ledger stays true and the daemon forwards them again; set both to on to lose none",
      ),
    // The first run turns it off where it can.
    found.isCompiling &&
      schemaVersion > 0 &&
      check.warning(
        "PostgreSQL compiles the queries of readers (jit is on): bars_1m takes seconds instead of milliseconds",
        `let a superuser or the owner run ALTER DATABASE "${database}" SET jit = off`,
      ),
  ];
  return all.filter((finding) => finding !== false);
}
