import type { LoadedSettings } from "../../../config/load-settings.ts";
import { findSharedSettings, type SharedSettings } from "../../../config/shared-settings.ts";
import { exitCode } from "../../../model/failure.ts";
import { isLoopback } from "../../../model/service-url.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { inspectServer, type ServerInspection } from "../../../share/server/inspect.ts";
import { foreignSchemaFailure, pooledFailure } from "../../../share/server/postgres-errors.ts";
import { type Finding, okFinding, problemFinding, warningFinding } from "./finding.ts";

const CHECK = "shared";

/** Reachability, version, rights, TLS and durability of the shared warehouse; nothing if there is none. */
export async function checkSharedWarehouse(loaded: LoadedSettings, clock: Clock): Promise<Finding[]> {
  const shared = findSharedSettings(loaded);
  if (!shared) return [];
  try {
    const server = await inspectServer({ ...shared, clock });
    return [...judge(server), describeRole(shared, server)];
  } catch (error) {
    return [problemFinding(CHECK, error)];
  }
}

/** A daemon in role `alone` beside another would wait for ever. */
function describeRole({ role, name }: SharedSettings, { forwardedBy }: ServerInspection): Finding {
  const message = `role ${role}, name ${name}; forwarded by ${forwardedBy ?? "nobody"} now`;
  if (role !== "alone" || forwardedBy === undefined || forwardedBy === name) return okFinding(CHECK, message);
  return warningFinding(CHECK, message, "set shared.role to pair in both daemons, or stop the other one");
}

function problem(message: string, remedy: string): Finding {
  return { check: CHECK, verdict: "problem", message, remedy, exit: exitCode.usage };
}

function judge(found: ServerInspection): Finding[] {
  const { address, version, schemaVersion, knownSchemaVersion, synchronousCommit } = found;
  const { host, port } = found.server;
  const place = `PostgreSQL ${version} at ${host}:${port}/${address.database}`;
  const schema =
    schemaVersion === undefined
      ? found.hasSchema
        ? "schema mds has no tables of mds-sync that can be read"
        : "schema mds is created by the first run"
      : `schema mds has version ${schemaVersion}`;
  const findings = [okFinding(CHECK, `${place} answers; ${schema}`)];
  if (found.isTooOld) findings.push(problem(`${place} is too old`, "PostgreSQL 14 or newer is needed"));
  if (schemaVersion !== undefined && schemaVersion > knownSchemaVersion)
    findings.push(
      problem(
        `schema mds was written by a newer mds-sync (${schemaVersion})`,
        "install that version here too",
      ),
    );
  if (found.foreignRelations.length > 0)
    findings.push(problemFinding(CHECK, foreignSchemaFailure(found.server, found.foreignRelations)));
  if (found.isPooled) findings.push(problemFinding(CHECK, pooledFailure(found.server)));
  if (!found.hasRights)
    findings.push(
      problem(
        found.hasSchema
          ? `user ${address.user} may not create tables in schema mds, or does not own those of mds-sync`
          : `user ${address.user} may not create schema mds`,
        found.hasSchema
          ? `make it the owner: ALTER SCHEMA mds OWNER TO "${address.user}", and REASSIGN OWNED for what is in it`
          : `GRANT CREATE ON DATABASE "${address.database}" TO "${address.user}"`,
      ),
    );
  if (found.isReadOnly)
    findings.push({
      ...problem(
        "the server accepts no writes: it is a standby, or default_transaction_read_only is on",
        "let shared.url name the primary (too), or reset that setting of the user",
      ),
      exit: exitCode.tryLater,
    });
  if (!found.isEncrypted && address.tls === "off" && !isLoopback({ hostname: host }))
    findings.push(
      warningFinding(CHECK, "the connection is not encrypted", "set sslmode=verify-full in shared.url"),
    );
  if (address.tls === "unverified")
    findings.push(
      warningFinding(
        CHECK,
        "the server's certificate is not verified",
        "set sslmode=verify-full in shared.url, and sslrootcert if its authority is private",
      ),
    );
  if (synchronousCommit === "off" || !found.hasFsync)
    findings.push(
      warningFinding(
        CHECK,
        `a crash of the server may lose its last commits (synchronous_commit ${synchronousCommit}, fsync ${found.hasFsync ? "on" : "off"})`,
        "the ledger stays true and the daemon forwards them again; set both to on to lose none",
      ),
    );
  // The first run turns it off where it can.
  if (found.isCompiling && schemaVersion !== undefined)
    findings.push(
      warningFinding(
        CHECK,
        "PostgreSQL compiles the queries of readers (jit is on): bars_1m takes seconds instead of milliseconds",
        `let a superuser or the owner run ALTER DATABASE "${address.database}" SET jit = off`,
      ),
    );
  return findings;
}
