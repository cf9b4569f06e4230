import { once } from "node:events";
import pg from "pg";
import { from as copyFrom, to as copyTo } from "pg-copy-streams";
import type { Clock } from "../../runtime/clock.ts";
import { noWritableFailure, readOnlyFailure, type ServerName, toShareFailure } from "./postgres-errors.ts";
import type { ServerAddress } from "./server-address.ts";

/** A network that drops packets in silence must not block forwarding for ever. */
const STATEMENT_TIMEOUT_MS = 120_000;
const CONNECT_TIMEOUT_MS = 10_000;

export interface SessionOptions {
  readonly address: ServerAddress;
  readonly readPassword: () => string | undefined;
  /** `application_name`: whoever takes over ends the sessions of this name. */
  readonly holder: string;
  readonly clock: Clock;
}

/** One connection to PostgreSQL. Statements run one after the other; a failed one throws a Failure. */
export class SharedSession {
  readonly address: ServerAddress;
  /** The one that this session is connected to. */
  readonly server: ServerName;
  readonly #client: pg.Client;
  readonly #clock: Clock;
  #lost: unknown;

  private constructor(client: pg.Client, server: ServerName, { address, clock }: SessionOptions) {
    this.#client = client;
    this.#clock = clock;
    this.address = address;
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
    const { address, readPassword, holder } = options;
    const { host, port, user, database } = server;
    // Each setting on its own: the driver lets a connection string without password override `password`.
    const client = new pg.Client({
      host,
      port,
      user,
      database,
      ssl: address.ssl,
      password: readPassword() ?? "",
      application_name: holder,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
    });
    const session = new SharedSession(client, server, options);
    const release = options.clock.beginWork();
    try {
      await client.connect();
      await client.query(
        "SET TIME ZONE 'UTC'; SET statement_timeout = 0; SET lock_timeout = '30s'; SET client_min_messages = 'warning'",
      );
      return session;
    } catch (error) {
      session.destroy();
      throw toShareFailure(error, server);
    } finally {
      release();
    }
  }

  /** Runs one statement with parameters, or several without. Returns the rows of the last one. */
  async query<Row extends object>(sql: string, values?: readonly unknown[]): Promise<Row[]> {
    return this.#guard(async () => {
      const result: pg.QueryResult<Row> | pg.QueryResult<Row>[] = await this.#client.query<Row>(
        sql,
        values as unknown[] | undefined,
      );
      return Array.isArray(result) ? (result.at(-1)?.rows ?? []) : result.rows;
    });
  }

  /** Sends the bytes of a binary COPY. */
  async copyIn(sql: string, bytes: Buffer): Promise<void> {
    await this.#guard(async () => {
      const stream = this.#client.query(copyFrom(sql));
      stream.end(bytes);
      await once(stream, "finish");
    });
  }

  /** Reads a binary COPY. */
  async copyOut(sql: string): Promise<Buffer> {
    return this.#guard(async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of this.#client.query(copyTo(sql))) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks);
    });
  }

  /** Runs `work` in a transaction: everything is committed when this resolves, nothing if it throws. */
  async transaction<T>(work: () => Promise<T>): Promise<T> {
    await this.query("BEGIN");
    let result: T;
    try {
      result = await work();
    } catch (error) {
      await this.query("ROLLBACK").catch(() => this.destroy());
      throw error;
    }
    await this.query("COMMIT");
    return result;
  }

  literal(text: string | null): string {
    return text === null ? "NULL" : this.#client.escapeLiteral(text);
  }

  async close(): Promise<void> {
    await this.#guard(() => this.#client.end()).catch(() => this.destroy());
  }

  /** Closes the socket without a word to the server. */
  destroy(): void {
    this.#lost ??= new Error("the connection was closed");
    (this.#client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  }

  async #guard<T>(work: () => Promise<T>): Promise<T> {
    if (this.#lost !== undefined) throw toShareFailure(this.#lost, this.server);
    const cancel = this.#clock.after(STATEMENT_TIMEOUT_MS, () => this.destroy());
    const release = this.#clock.beginWork();
    try {
      return await work();
    } catch (error) {
      // What broke the connection explains more than the statement that it interrupted.
      throw toShareFailure(error, this.server);
    } finally {
      release();
      cancel();
    }
  }
}

/** Not every service that speaks PostgreSQL has timelines. */
async function readTimeline(session: SharedSession): Promise<number> {
  const sql = "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline";
  const rows = await session.query<{ timeline: string }>(sql).catch(() => []);
  return Number.parseInt(rows[0]?.timeline ?? "0", 16);
}
