import type { Clock } from "../../runtime/clock.ts";
import {
  findOurRelations,
  MIN_SERVER_VERSION,
  ourRelations,
  readSchemaState,
  SCHEMA_VERSION,
} from "../schema/migrate.ts";
import { parseServerAddress } from "./server-address.ts";
import { isCompiling, SharedSession } from "./session.ts";

interface FoundSettings {
  readonly version: string;
  readonly number: number;
  readonly hasSchema: boolean;
  readonly canCreate: boolean;
  readonly canRead: boolean;
  readonly canWrite: boolean;
  readonly isReadOnly: boolean;
  readonly isEncrypted: boolean;
  readonly synchronousCommit: string;
  readonly hasFsync: boolean;
}

/** What `doctor` reports about the shared warehouse. */
export type ServerInspection = Awaited<ReturnType<typeof inspectServer>>;

/** Connects, looks, and changes nothing. */
export async function inspectServer(options: {
  readonly url: string;
  readonly readPassword: () => string | undefined;
  readonly clock: Clock;
}) {
  const address = parseServerAddress(options.url);
  const session = await SharedSession.connect({ ...options, address, holder: "mds-sync doctor" });
  try {
    const [row] = await session.query<FoundSettings>(
      `SELECT current_setting('server_version') AS version, current_setting('server_version_num')::integer AS number,
        to_regnamespace('mds') IS NOT NULL AS "hasSchema",
        has_database_privilege(current_database(), 'CREATE') AS "canCreate",
        coalesce(has_schema_privilege(to_regnamespace('mds')::oid, 'USAGE'), false) AS "canRead",
        coalesce(has_schema_privilege(to_regnamespace('mds')::oid, 'CREATE'), false) AND NOT EXISTS (SELECT 1 FROM pg_class c
          WHERE c.relnamespace = to_regnamespace('mds')::oid AND coalesce(substring(c.relname FROM '^(.+)_[0-9]{4}_[0-9]{2}$'), c.relname) = ANY ($1) AND NOT pg_has_role(c.relowner, 'USAGE')) AS "canWrite",
        pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS "isReadOnly",
        coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS "isEncrypted",
        current_setting('synchronous_commit') AS "synchronousCommit", current_setting('fsync') = 'on' AS "hasFsync"`,
      [ourRelations],
    );
    if (!row) throw new Error("the server returned no settings");
    const { number, canCreate, canRead, canWrite, ...settings } = row;
    const schema = canRead ? await readSchemaState(session).catch(() => undefined) : undefined;
    const schemaVersion = schema?.version;
    return {
      ...settings,
      address,
      server: session.server,
      isTooOld: number < MIN_SERVER_VERSION,
      /** Undefined: the schema does not exist yet, or has no tables of this program. */
      schemaVersion,
      /** Relations of someone else's schema `mds` that have our names. */
      foreignRelations: canRead && schemaVersion === undefined ? await findOurRelations(session) : [],
      knownSchemaVersion: SCHEMA_VERSION,
      /** Whether the user may create the schema, or write into the existing one. */
      hasRights: settings.hasSchema ? canWrite : canCreate,
      isCompiling: await isCompiling(session),
      /** A pool gives each transaction another connection. */
      isPooled: await session.isPooled(),
      /** The name of the daemon that holds the lease; undefined: nobody does. */
      forwardedBy: await readHolder(session),
    };
  } finally {
    await session.close();
  }
}

async function readHolder(session: SharedSession): Promise<string | undefined> {
  const sql = "SELECT name FROM mds.lease WHERE holder <> '' AND until > clock_timestamp()";
  // There may be no such table, or no right to read it.
  const [held] = await session.query<{ name: string }>(sql).catch(() => []);
  return held?.name;
}
