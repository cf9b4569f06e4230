import { Failure } from "../../model/failure.ts";
import type { ShareRole, ShareStatus } from "../../model/status/share-status.ts";
import type { Clock } from "../../runtime/clock.ts";
import { openReader } from "../../warehouse/reader.ts";
import { readJournalPosition } from "../../warehouse/tables/journal.ts";
import { describePlace, parseServerAddress } from "./server-address.ts";
import { SharedSession } from "./session.ts";

/** Whoever asks for the status does not wait longer for a server that is down. */
const CONNECT_TIMEOUT_MS = 2_000;

interface ReadShareStatusOptions {
  readonly warehouse: string;
  readonly url: string;
  readonly readPassword: () => string | undefined;
  readonly role: ShareRole;
  readonly name: string;
  readonly clock: Clock;
}

/** How far PostgreSQL is behind the file, as PostgreSQL itself tells: for a daemon that cannot be asked. */
export async function readShareStatus(options: ReadShareStatusOptions): Promise<ShareStatus> {
  const { url, role, name } = options;
  const address = parseServerAddress(url);
  const status = {
    server: describePlace(address).replace("postgres://", ""),
    name,
    role,
    forwarded_by: null,
    lag_seconds: null,
    rows_forwarded: 0,
    last_error: null,
  };
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
    const lag = row?.seq == null || row.age === null ? null : Number(row.seq) >= position.seq ? 0 : row.age;
    if (holder !== null && holder !== name)
      return { state: "standby", forwarded_by: holder, lag_seconds: lag } as const;
    if (lag === 0) return { state: "current", lag_seconds: lag } as const;
    const last_error = holder === null ? "nobody forwards: start mds-sync run, or run mds-sync share" : null;
    return { state: holder === null ? "failing" : "forwarding", lag_seconds: lag, last_error } as const;
  } finally {
    await session.close();
  }
}
