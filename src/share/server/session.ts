import { once } from "node:events";
import pg from "pg";
import { from as copyFrom, to as copyTo } from "pg-copy-streams";
import { Failure, failureCode } from "../../model/failure.ts";
import { quoteName } from "../../model/sql-text.ts";
import type { Clock } from "../../runtime/clock.ts";
import {
  blockedFailure,
  noWritableFailure,
  readOnlyFailure,
  type ServerName,
  toShareFailure,
} from "./postgres-errors.ts";
import type { ServerAddress } from "./server-address.ts";

/** A network that drops packets in silence must not block forwarding for ever. */
const STATEMENT_TIMEOUT_MS = 15_000;
/** A COPY, or to read or change all of a large table. */
export const TABLE_TIMEOUT_MS = 120_000;
/** To build an index on a month, or to upgrade the schema. */
export const BUILD_TIMEOUT_MS = 3_600_000;
/** `status` shows a statement that takes longer. */
const MAX_SILENT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** A server that is only looked at must not delay forwarding. */
const LOOK_TIMEOUT_MS = 3_000;

/** Whatever the role or the database has set: some values would end a session or change digits. */
const SETTINGS = Object.entries({
  TimeZone: "UTC",
  DateStyle: "ISO",
  extra_float_digits: "1",
  standard_conforming_strings: "on",
  client_min_messages: "warning",
  default_transaction_isolation: "read committed",
  search_path: "pg_catalog",
  lock_timeout: "10s",
  statement_timeout: "0",
  transaction_timeout: "0",
  idle_in_transaction_session_timeout: "0",
  idle_session_timeout: "0",
  jit: "off",
})
  // Each server knows those of its version only.
  .map(
    ([name, value]) => `SELECT set_config(name, '${value}', false) FROM pg_settings WHERE name = '${name}'`,
  )
  .join("; ");

/**
 * The first statement of a transaction that changes tables or views. An exclusive lock on a table waits for every open transaction
 * that has read it, and every new reader waits behind it. So nobody waits for one: the transaction is given up at once.
 */
export const WITHOUT_WAITING = "SET LOCAL lock_timeout = '200ms'";

/** SQL that describes a session `a` of pg_stat_activity; of other users it may hide the state and the time. */
const SESSION_SQL = `format('pid %s (%s)', a.pid, concat_ws(', ', coalesce(a.usename::text, a.backend_type), nullif(a.application_name, ''),
  a.state, 'query of ' || to_char(a.query_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')))`;

/** PostgreSQL has not answered since then, in milliseconds since 1970; who has the lock that it waits for. */
export interface WaitingReport {
  readonly kind: "waiting";
  readonly since: number;
  readonly blockers: readonly string[];
}

interface SessionOptions {
  readonly address: ServerAddress;
  readonly readPassword: () => string | undefined;
  /** `application_name`: whoever takes over ends the sessions of this name. */
  readonly holder: string;
  readonly clock: Clock;
  /** Called when the server has not answered for a while. */
  readonly report?: (report: WaitingReport) => void;
  readonly connectTimeoutMs?: number;
}

/** One connection to PostgreSQL. Statements run one after the other; a failed one throws a Failure. */
export class SharedSession {
  readonly server: ServerName;
  readonly #client: pg.Client;
  readonly #options: SessionOptions;
  #lost: unknown;
  /** Sessions that have the lock which the statement waits or has waited for, as far as known. */
  #blockers: readonly string[] = [];

  private constructor(client: pg.Client, server: ServerName, options: SessionOptions) {
    this.#client = client;
    this.#options = options;
    this.server = server;
    client.on("error", (error) => {
      this.#lost ??= error;
    });
  }

  /** Connects to the server, or of several to the one that accepts writes: a standby may have been promoted. */
  static async connect(options: SessionOptions): Promise<SharedSession> {
    const { servers } = options.address;
    const [only] = servers;
    if (only && servers.length === 1) return SharedSession.#connectTo(only, options);
    const attempts = await Promise.allSettled(
      servers.map((server) => SharedSession.#connectWritable(server, options)),
    );
    const open = attempts.flatMap((attempt) => (attempt.status === "fulfilled" ? [attempt.value] : []));
    // A former primary that was started again also accepts writes; each promotion begins a new timeline.
    const [newest, ...others] = open.sort((a, b) => b.timeline - a.timeline);
    await Promise.all(others.map(({ session }) => session.close()));
    if (newest) return newest.session;
    throw noWritableFailure(attempts.flatMap((each) => (each.status === "rejected" ? [each.reason] : [])));
  }

  static async #connectWritable(
    server: ServerName,
    options: SessionOptions,
  ): Promise<{ readonly session: SharedSession; readonly timeline: number }> {
    const session = await SharedSession.#connectTo(server, options);
    try {
      const [row] = await session.query<{ isReadOnly: boolean }>(
        "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS \"isReadOnly\"",
      );
      if (row?.isReadOnly) throw readOnlyFailure(server);
      return { session, timeline: await readTimeline(session) };
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  static async #connectTo(server: ServerName, options: SessionOptions): Promise<SharedSession> {
    const { address, readPassword, holder, connectTimeoutMs = CONNECT_TIMEOUT_MS } = options;
    // Each setting on its own: the driver lets a connection string without password override `password`.
    const client = new pg.Client({
      ...server,
      ssl: address.ssl,
      password: readPassword() ?? "",
      application_name: holder,
      connectionTimeoutMillis: connectTimeoutMs,
      keepAlive: true,
    });
    const session = new SharedSession(client, server, options);
    const release = options.clock.beginWork();
    try {
      await client.connect();
      await client.query(SETTINGS);
      return session;
    } catch (error) {
      session.destroy();
      throw toShareFailure(error, server);
    } finally {
      release();
    }
  }

  /** The other servers of the address that accept writes, as HOST:PORT: promoted after this one, or a former primary. */
  async findOtherWriters() {
    const [newer, older]: [string[], string[]] = [[], []];
    const options = { ...this.#options, connectTimeoutMs: LOOK_TIMEOUT_MS, report: () => {} };
    for (const server of this.#options.address.servers) {
      const { host, port } = server;
      if (host === this.server.host && port === this.server.port) continue;
      const writer = await SharedSession.#connectWritable(server, options).catch(() => undefined);
      if (!writer) continue;
      await writer.session.close();
      const isNewer = writer.timeline > (await readTimeline(this));
      (isNewer ? newer : older).push(`${host}:${port}`);
    }
    return { newer, older };
  }

  /** The sessions that this one waits for, and those that they wait for. */
  async #findBlockers(): Promise<string[]> {
    const options = { ...this.#options, connectTimeoutMs: LOOK_TIMEOUT_MS, report: () => {} };
    const other = await SharedSession.#connectTo(this.server, options);
    try {
      const { processID } = this.#client as unknown as { processID: number };
      const rows = await other.query<{ who: string }>(
        `WITH RECURSIVE b(pid) AS (SELECT unnest(pg_blocking_pids($1)) UNION SELECT unnest(pg_blocking_pids(b.pid)) FROM b)
        SELECT ${SESSION_SQL} AS who FROM b JOIN pg_stat_activity a USING (pid) ORDER BY a.pid`,
        [processID],
      );
      return rows.map(({ who }) => who);
    } finally {
      await other.close();
    }
  }

  /** The other sessions that hold a lock in schema `mds`. */
  async #findLockHolders(): Promise<string[]> {
    const rows = await this.query<{ who: string }>(
      `SELECT ${SESSION_SQL} AS who
      FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid() AND a.pid IN (SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
        WHERE l.granted AND c.relnamespace = to_regnamespace('mds')::oid) ORDER BY a.pid`,
    );
    return rows.map(({ who }) => who);
  }

  /** Whether a pool gives each transaction any of its connections: two of ours then share one, or change theirs. */
  async isPooled(): Promise<boolean> {
    const other = await SharedSession.#connectTo(this.server, this.#options);
    try {
      const pids: (number | undefined)[] = [];
      for (const session of [this, other, this, other])
        pids.push((await session.query<{ pid: number }>("SELECT pg_backend_pid() AS pid"))[0]?.pid);
      const [first, second, firstAgain, secondAgain] = pids;
      return first !== firstAgain || second !== secondAgain || first === second;
    } finally {
      await other.close();
    }
  }

  /** Runs one statement with parameters, or several without. Returns the rows of the last one. */
  async query<Row extends object>(
    sql: string,
    values?: readonly unknown[],
    timeoutMs = STATEMENT_TIMEOUT_MS,
  ): Promise<Row[]> {
    return this.#guard(timeoutMs, async () => {
      const result: pg.QueryResult<Row> | pg.QueryResult<Row>[] = await this.#client.query<Row>(
        sql,
        values as unknown[] | undefined,
      );
      return Array.isArray(result) ? (result.at(-1)?.rows ?? []) : result.rows;
    });
  }

  /** The same for a statement that reads or changes all of a large table. */
  queryTable<Row extends object>(sql: string): Promise<Row[]> {
    return this.query(sql, undefined, TABLE_TIMEOUT_MS);
  }

  async copyIn(sql: string, bytes: Buffer): Promise<void> {
    await this.#guard(TABLE_TIMEOUT_MS, async () => {
      const stream = this.#client.query(copyFrom(sql));
      stream.end(bytes);
      await once(stream, "finish");
    });
  }

  /** Copies rows into the temporary table `incoming`, which gets these columns of a table. */
  async stage(table: string, columns: readonly string[], bytes: Buffer): Promise<void> {
    const names = columns.map(quoteName).join(", ");
    await this.query(
      `DROP TABLE IF EXISTS pg_temp.incoming; CREATE TEMP TABLE incoming AS SELECT ${names} FROM ${table} LIMIT 0`,
    );
    await this.copyIn("COPY pg_temp.incoming FROM STDIN (FORMAT binary)", bytes);
  }

  async copyOut(sql: string): Promise<Buffer> {
    return this.#guard(TABLE_TIMEOUT_MS, async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of this.#client.query(copyTo(sql))) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks);
    });
  }

  /**
   * Runs `work` in a transaction: everything is committed when this resolves, nothing if it throws. If a lock is not to be had, the
   * failure names sessions.
   */
  async transaction<T>(work: () => Promise<T>): Promise<T> {
    await this.query("BEGIN");
    let result: T;
    try {
      result = await work();
    } catch (error) {
      const isUnnamed = failureCode(error) === "share_blocked" && this.#blockers.length === 0;
      await this.query("ROLLBACK").catch(() => this.destroy());
      throw isUnnamed ? blockedFailure(this.server, await this.#findLockHolders()) : error;
    }
    await this.query("COMMIT");
    return result;
  }

  literal(text: string | null): string {
    return text === null ? "NULL" : this.#client.escapeLiteral(text);
  }

  async close(): Promise<void> {
    await this.#guard(STATEMENT_TIMEOUT_MS, () => this.#client.end()).catch(() => this.destroy());
  }

  /** Closes the socket without a message to the server. */
  destroy(reason = "the connection was closed"): void {
    this.#lost ??= new Error(reason);
    (this.#client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  }

  async #guard<T>(timeoutMs: number, work: () => Promise<T>): Promise<T> {
    if (this.#lost !== undefined) throw toShareFailure(this.#lost, this.server);
    const { clock, report } = this.#options;
    const since = clock.now();
    let isOver = false;
    this.#blockers = [];
    const cancelReport = clock.after(MAX_SILENT_MS, () => {
      report?.({ kind: "waiting", since, blockers: [] });
      const reportBlockers = (blockers: readonly string[]) => {
        if (isOver || blockers.length === 0) return;
        this.#blockers = blockers;
        report?.({ kind: "waiting", since, blockers });
      };
      // Without an answer the reason stays unknown.
      this.#findBlockers().then(reportBlockers, () => {});
    });
    const cancel = clock.after(timeoutMs, () =>
      this.destroy(`no answer for ${Math.round(timeoutMs / 1000)} s`),
    );
    const release = clock.beginWork();
    try {
      return await work();
    } catch (error) {
      // The cause of the broken connection explains more than the interrupted statement, and the blocking session even more.
      const failure = toShareFailure(this.#lost ?? error, this.server);
      const isBlocked = this.#blockers.length > 0 && /^share_(blocked|unreachable)$/.test(failure.code);
      throw isBlocked ? blockedFailure(this.server, this.#blockers) : failure;
    } finally {
      isOver = true;
      release();
      cancel();
      cancelReport();
    }
  }
}

/** Not every service that speaks PostgreSQL has timelines. */
async function readTimeline(session: SharedSession): Promise<number> {
  const sql = "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline";
  const rows = await session.query<{ timeline: string }>(sql).catch(() => []);
  return Number.parseInt(rows[0]?.timeline ?? "0", 16);
}

/*
 * Where PostgreSQL is built with LLVM, it compiles a query that it expects to be expensive. It expects that of views that
 * compute bars from ticks: to compile one takes seconds, to run it milliseconds. No view can turn that off, a database can.
 */

/** Whether a new session of this database compiles its queries. */
export async function isCompiling(session: SharedSession): Promise<boolean> {
  const [row] = await session.query<{ found: boolean }>(
    "SET LOCAL jit = DEFAULT; SELECT pg_jit_available() AS found",
  );
  return row?.found === true;
}

/** Turns compiling off for whoever connects to the database, if it is ours and nobody has set this. */
export async function turnOffCompiling(session: SharedSession): Promise<void> {
  const sql = `DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_settings s JOIN pg_database d ON d.datname = current_database() WHERE s.name = 'jit'
      AND s.reset_val = 'on' AND pg_has_role(d.datdba, 'USAGE') AND NOT EXISTS (SELECT FROM pg_db_role_setting r
        WHERE r.setdatabase = d.oid AND r.setrole = 0 AND array_to_string(r.setconfig, ' ') ~ '(^| )jit='))
    THEN EXECUTE format('ALTER DATABASE %I SET jit = off', current_database()); END IF; END $$`;
  await session.query(sql).catch((error: unknown) => {
    // Some services refuse it; `doctor` reports it.
    if (!(error instanceof Failure)) throw error;
  });
}
