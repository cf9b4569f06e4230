import { Failure } from "../../model/failure.ts";
import type { Clock } from "../../runtime/clock.ts";
import { fencedFailure } from "./postgres-errors.ts";
import type { SharedSession } from "./session.ts";

/*
 * Who may forward. The database's clock decides when the lease may be taken, the epoch who may commit: every transaction
 * begins with a lock on the lease's row that checks its epoch, and whoever takes the lease raises it. No clock of a client
 * is trusted.
 */

interface LeaseOptions {
  readonly session: SharedSession;
  /** Ends forwarding between two transactions. */
  readonly signal: AbortSignal;
  readonly clock: Pick<Clock, "sleep" | "monotonic">;
  /** Unique per start of the program; also the session's `application_name`. */
  readonly holder: string;
  /** What a person calls this daemon. */
  readonly name: string;
  readonly seconds: number;
}

interface LeaseRow {
  readonly epoch: string;
  readonly until: string;
  readonly holder: string;
  readonly name: string;
  /** It was given back, has expired, or its holder has our name and no session: that daemon was restarted. */
  readonly isFree: boolean;
}

/** The session of a killed program ends a moment after the program. */
const HELD_RETRIES = 10;
const HELD_RETRY_INTERVAL_MS = 300;

/** The lease of the shared warehouse, as one session sees it. */
export class Lease {
  readonly session: SharedSession;
  readonly #options: LeaseOptions;
  commits = 0;
  /** The name of the holder when this session tried to take the lease. */
  heldBy = "";
  /** Undefined while this session does not hold it. */
  #epoch: string | undefined;
  #renewedAt = 0;
  /** The leader to which `giveBack` returns the lease. */
  #leader: LeaseRow | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.session = options.session;
  }

  /** Takes the lease. Throws if another daemon holds it; if `isPatient`, only after it was seen for a while. */
  async take({ isPatient }: { readonly isPatient: boolean }): Promise<void> {
    const { session } = this;
    const { clock } = this.#options;
    let row = await this.#read();
    for (let i = 0; isPatient && !row.isFree && i < HELD_RETRIES; i++) {
      await clock.sleep(HELD_RETRY_INTERVAL_MS);
      row = await this.#read();
    }
    this.heldBy = row.name;
    if (!row.isFree)
      throw new Failure(`the mds-sync named ${row.name} is forwarding to the shared warehouse now`, {
        code: "share_held",
        remedy: "a running daemon forwards by itself; stop it first, or try again later",
      });
    // A session that waits for the rows of a COPY ignores every timeout of the server: only this ends it.
    if (row.holder !== "")
      await session.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND pid <> pg_backend_pid()",
        [row.holder],
      );
    await this.#raise(row.epoch, row.until);
    this.#leader = undefined;
  }

  /** Takes the lease from the leader between two of its transactions. `giveBack` returns it. */
  async takeForOnce(): Promise<void> {
    const row = await this.#read();
    await this.#raise(row.epoch, null);
    this.#leader = row;
  }

  /** Enters this session as the holder, unless another did so or, if `until` is given, the holder has renewed the lease. */
  async #raise(epoch: string, until: string | null): Promise<void> {
    const { session } = this;
    const { clock, holder, name } = this.#options;
    const [taken] = await session.transaction(async () => {
      // Waits for the transactions of the former holder, which lock the row against this.
      await session.query("SELECT 1 FROM mds.lease FOR UPDATE");
      this.#renewedAt = clock.monotonic();
      return session.query<{ epoch: string }>(
        `UPDATE mds.lease SET epoch = epoch + 1, holder = $1, name = $2, until = ${this.#end}
        WHERE epoch = $3 AND until = coalesce($4::timestamptz, until) RETURNING epoch`,
        [holder, name, epoch, until],
      );
    });
    if (!taken) throw fencedFailure();
    this.#epoch = taken.epoch;
  }

  async #read(): Promise<LeaseRow> {
    const { name } = this.#options;
    const [row] = await this.session.query<LeaseRow>(
      `SELECT l.epoch, l.until::text AS until, l.holder, l.name,
        (l.holder = '' OR l.until <= clock_timestamp() OR (l.name = $1 AND NOT EXISTS
          (SELECT 1 FROM pg_stat_activity a WHERE a.application_name = l.holder))) AS "isFree"
      FROM mds.lease l`,
      [name],
    );
    if (!row) throw new Error("mds.lease has no row");
    return row;
  }

  get #end(): string {
    return `clock_timestamp() + interval '${this.#options.seconds} seconds'`;
  }

  /**
   * Extends the lease if a third of its time has passed; throws if another daemon has taken it. Unlike taking it, this does
   * not wait for transactions of its epoch. Call it also while there is nothing to forward.
   */
  async renewIfDue(): Promise<void> {
    const { clock, seconds } = this.#options;
    if (clock.monotonic() - this.#renewedAt <= (seconds * 1000) / 3) return;
    this.#renewedAt = clock.monotonic();
    const sql = `UPDATE mds.lease SET until = ${this.#end} WHERE epoch = $1 RETURNING 1`;
    if ((await this.session.query(sql, [this.#epoch])).length === 0) throw fencedFailure();
  }

  /** Returns the lease to the leader that it was taken from for once, or frees it, so that nobody waits for its end. */
  async giveBack(): Promise<void> {
    const epoch = this.#epoch;
    if (epoch === undefined) return;
    this.#epoch = undefined;
    const { name } = this.#options;
    const leader = this.#leader;
    const until = leader ? this.#end : "'-infinity'";
    const sql = `UPDATE mds.lease SET until = ${until}, holder = $2, name = $3 WHERE epoch = $1`;
    await this.session.query(sql, [epoch, leader?.holder ?? "", leader?.name ?? name]);
  }

  /** Runs `work` in a transaction that commits only if the lease is still ours. */
  async transaction<T>(work: () => Promise<T>): Promise<T> {
    const { session } = this;
    this.#options.signal.throwIfAborted();
    await this.renewIfDue();
    const result = await session.transaction(async () => {
      // READ COMMITTED checks the epoch again after it has waited for the lock.
      const sql = "SELECT 1 FROM mds.lease WHERE epoch = $1 FOR KEY SHARE";
      if ((await session.query(sql, [this.#epoch])).length === 0) throw fencedFailure();
      return work();
    });
    this.commits++;
    return result;
  }

  /** Runs statements in such a transaction. */
  async run(sql: string, timeoutMs?: number): Promise<void> {
    await this.transaction(() => this.session.query(sql, undefined, timeoutMs));
  }
}
