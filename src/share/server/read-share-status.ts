import { randomUUID } from "node:crypto";
import { Failure } from "../../model/failure.ts";
import type { ShareDaemon, SharePeers, ShareStatus, StandbyServer } from "../../model/status/share-status.ts";
import type { Clock } from "../../runtime/clock.ts";
import { openReader } from "../../warehouse/reader.ts";
import { readJournalPosition } from "../../warehouse/tables/journal.ts";
import type { ShareThreadSettings } from "../thread/share-messages.ts";
import { parseServerAddress, statusAtStart } from "./server-address.ts";
import { SharedSession } from "./session.ts";

/** Whoever asks for the status does not wait longer for a server that is down. */
const CONNECT_TIMEOUT_MS = 2_000;

interface ReadShareStatusOptions extends Omit<ShareThreadSettings, "leaseSeconds"> {
  readonly readPassword: () => string | undefined;
  readonly clock: Clock;
}

/** How far PostgreSQL is behind the file, by PostgreSQL itself: for a daemon that cannot be asked. */
export async function readShareStatus(options: ReadShareStatusOptions): Promise<ShareStatus> {
  const status = statusAtStart(options);
  try {
    return { ...status, ...(await readState(options)) };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { ...status, state: "failing", last_error: error.summary };
  }
}

async function readState({ warehouse, url, readPassword, name, clock }: ReadShareStatusOptions) {
  const address = parseServerAddress(url);
  const connection = openReader(warehouse);
  const position = readJournalPosition(connection);
  connection.close();
  const session = await SharedSession.connect({
    address,
    readPassword,
    holder: "mds-sync status",
    clock,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
  });
  try {
    const [row] = await session.query<{ holder: string | null; seq: string | null; age: number | null }>(
      `SELECT (SELECT name FROM mds.lease WHERE holder <> '' AND until > clock_timestamp()) AS holder, p.seq,
        extract(epoch FROM clock_timestamp() - p.moved_at)::double precision AS age
      FROM (SELECT 1) one LEFT JOIN mds.positions p ON p.changes_id = $1`,
      [position.id],
    );
    const holder = row?.holder ?? null;
    const peers = await readPeers(session);
    const lag = row?.seq == null || row.age === null ? null : Number(row.seq) >= position.seq ? 0 : row.age;
    if (holder !== null && holder !== name)
      return { state: "standby", forwarded_by: holder, lag_seconds: lag, peers } as const;
    if (lag === 0) return { state: "current", lag_seconds: lag, last_error: null, peers } as const;
    const last_error = holder === null ? "nobody forwards: start mds-sync run, or run mds-sync share" : null;
    const state = holder === null ? "failing" : "forwarding";
    return { state, lag_seconds: lag, last_error, peers } as const;
  } finally {
    await session.close();
  }
}

/** PostgreSQL keeps so many bytes of a session's name, and ASCII only; the lease compares it. */
const MAX_NAME_LENGTH = 40;
const HOLDER_SQL = "'^mds-sync (.*) [0-9a-f]{8}$'";

/** What a daemon calls its session: unique per start, and others can read its name. */
export function createHolder(name: string): string {
  const plain = name.replace(/[^ -~]/g, "?").slice(0, MAX_NAME_LENGTH);
  return `mds-sync ${plain} ${randomUUID().slice(0, 8)}`;
}

/** Reads who works with the shared warehouse; null if this PostgreSQL does not show it. */
export async function readPeers(session: SharedSession): Promise<SharePeers | null> {
  try {
    const daemons = await session.query<ShareDaemon>(
      `SELECT DISTINCT substring(a.application_name FROM ${HOLDER_SQL}) AS name,
        host(a.client_addr) AS address, coalesce(a.application_name = l.holder AND l.until > clock_timestamp(), false) AS is_forwarding
      FROM pg_stat_activity a LEFT JOIN mds.lease l ON true
      WHERE a.datname = current_database() AND a.application_name ~ ${HOLDER_SQL} ORDER BY is_forwarding DESC, name`,
    );
    const [moved] = await session.query<{ ago: number | null; user: string }>(
      `SELECT extract(epoch FROM clock_timestamp() - max(moved_at))::double precision AS ago, current_user::text AS "user"
      FROM mds.positions`,
    );
    // Without the right to details, PostgreSQL shows only that there is a standby.
    const standby_servers = await session.query<StandbyServer>(
      `SELECT coalesce(nullif(application_name, ''), 'pid ' || pid) AS name, state, sync_state IN ('sync', 'quorum') AS is_synchronous,
        CASE WHEN NOT pg_is_in_recovery() AND replay_lsn >= pg_current_wal_lsn() THEN 0
          ELSE extract(epoch FROM replay_lag)::double precision END AS lag_seconds FROM pg_stat_replication ORDER BY 1`,
    );
    const unread = standby_servers.some(({ state }) => state === null)
      ? `the state of its standby servers could not be read: GRANT pg_monitor TO "${moved?.user}"`
      : null;
    return { daemons, forwarded_seconds_ago: moved?.ago ?? null, standby_servers, unread };
  } catch (error) {
    if (error instanceof Failure) return null;
    throw error;
  }
}
