import { BUCKET_COUNT } from "../../model/buckets.ts";
import type { Clock } from "../../runtime/clock.ts";
import { fencedFailure, heldFailure } from "./postgres-errors.ts";
import type { SharedSession } from "./session.ts";

/*
 * Who may forward what. Series are divided among buckets, and each bucket has a lease. The database's clock decides when a
 * lease may be taken, the epoch who may commit: every transaction begins with a lock on the rows of its leases that checks
 * their epochs, and whoever takes a lease raises its epoch. No clock of a client is trusted.
 */

export interface LeaseOptions {
  readonly session: SharedSession;
  readonly clock: Pick<Clock, "sleep" | "monotonic">;
  /** Unique per start of the program; also the session's `application_name`. */
  readonly holder: string;
  /** What a person calls this daemon. */
  readonly name: string;
  readonly seconds: number;
}

export interface LeaseRow {
  readonly bucket: number;
  readonly epoch: string;
  readonly until: string;
  readonly holder: string;
  readonly name: string;
  /** It was given back, it has ended, or the daemon of our name that held it has lost its session: it was restarted. */
  readonly isFree: boolean;
}

/** A killed program's session ends a moment after it: only then it is known to be dead. */
const HELD_RETRIES = 10;
const HELD_RETRY_INTERVAL_MS = 300;

/** The leases of one session. */
export class Leases {
  readonly #options: LeaseOptions;
  readonly #epochs = new Map<number, string>();
  #renewedAt: number;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#renewedAt = options.clock.monotonic();
  }

  get buckets(): number[] {
    return [...this.#epochs.keys()].sort((a, b) => a - b);
  }

  get count(): number {
    return this.#epochs.size;
  }

  has(bucket: number): boolean {
    return this.#epochs.has(bucket);
  }

  async read(): Promise<LeaseRow[]> {
    const { session, name } = this.#options;
    return session.query<LeaseRow>(
      `SELECT l.bucket, l.epoch, l.until::text AS until, l.holder, l.name,
        (l.holder = '' OR l.until <= clock_timestamp() OR (l.name = $1 AND NOT EXISTS
          (SELECT 1 FROM pg_stat_activity a WHERE a.application_name = l.holder))) AS "isFree"
      FROM mds.leases l ORDER BY l.bucket`,
      [name],
    );
  }

  /** Takes all leases. Throws if another daemon holds one; if `isPatient`, only after it was seen for a while. */
  async takeAll({ isPatient }: { readonly isPatient: boolean }): Promise<void> {
    const { clock } = this.#options;
    let rows = await this.read();
    for (let i = 0; isPatient && this.#findHeld(rows) && i < HELD_RETRIES; i++) {
      await clock.sleep(HELD_RETRY_INTERVAL_MS);
      rows = await this.read();
    }
    const held = this.#findHeld(rows);
    if (held) throw heldFailure(held.name);
    await this.take(rows);
    if (this.count < BUCKET_COUNT) throw fencedFailure();
  }

  #findHeld(rows: readonly LeaseRow[]): LeaseRow | undefined {
    return rows.find(({ isFree, holder }) => !isFree && holder !== this.#options.holder);
  }

  /** Takes free leases. Returns the buckets of those that nobody else has taken or renewed meanwhile. */
  async take(free: readonly LeaseRow[]): Promise<number[]> {
    const { session, holder, name } = this.#options;
    if (free.length === 0) return [];
    // A session that waits for the rows of a COPY ignores every timeout of the server: only this ends it.
    const former = [...new Set(free.map((row) => row.holder))].filter((id) => id !== "" && id !== holder);
    if (former.length > 0)
      await session.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = ANY ($1) AND pid <> pg_backend_pid()",
        [former],
      );
    const buckets = free.map(({ bucket }) => bucket);
    const taken = await session.transaction(async () => {
      // Waits for the transactions of the former holder, which lock the rows against this.
      await session.query("SELECT 1 FROM mds.leases WHERE bucket = ANY ($1) ORDER BY bucket FOR UPDATE", [
        buckets,
      ]);
      return session.query<{ bucket: number; epoch: string }>(
        `UPDATE mds.leases l SET epoch = l.epoch + 1, holder = $1, name = $2, until = ${this.#endOfLease}
        FROM unnest($3::integer[], $4::bigint[], $5::timestamptz[]) AS f (bucket, epoch, until)
        WHERE l.bucket = f.bucket AND l.epoch = f.epoch AND l.until = f.until RETURNING l.bucket, l.epoch`,
        [holder, name, buckets, free.map(({ epoch }) => epoch), free.map(({ until }) => until)],
      );
    });
    for (const { bucket, epoch } of taken) this.#epochs.set(bucket, epoch);
    return taken.map(({ bucket }) => bucket);
  }

  get #endOfLease(): string {
    return `clock_timestamp() + interval '${this.#options.seconds} seconds'`;
  }

  /** Extends the leases if a third of their time has passed. Returns the buckets that another daemon has taken. */
  async renewIfDue(): Promise<number[]> {
    const { clock, seconds } = this.#options;
    return clock.monotonic() - this.#renewedAt <= (seconds * 1000) / 3 ? [] : this.renew();
  }

  /** Unlike taking a lease, this does not wait for transactions of its epoch. */
  async renew(): Promise<number[]> {
    const { session, clock } = this.#options;
    this.#renewedAt = clock.monotonic();
    if (this.count === 0) return [];
    const renewed = await session.query<{ bucket: number }>(
      `UPDATE mds.leases SET until = ${this.#endOfLease} WHERE ${this.#condition(this.buckets)} RETURNING bucket`,
    );
    const kept = new Set(renewed.map(({ bucket }) => bucket));
    const lost = this.buckets.filter((bucket) => !kept.has(bucket));
    for (const bucket of lost) this.#epochs.delete(bucket);
    return lost;
  }

  /** Gives leases back, so that another daemon need not wait for their end. */
  async giveBack(buckets: readonly number[] = this.buckets): Promise<void> {
    const own = buckets.filter((bucket) => this.has(bucket));
    if (own.length === 0) return;
    const condition = this.#condition(own);
    for (const bucket of own) this.#epochs.delete(bucket);
    const sql = `UPDATE mds.leases SET until = '-infinity', holder = '' WHERE ${condition}`;
    await this.#options.session.query(sql);
  }

  /** Runs `work` in a transaction that commits only if the leases of these buckets are still ours. */
  async inFence<T>(buckets: readonly number[], work: () => Promise<T>): Promise<T> {
    const { session } = this.#options;
    if (buckets.length === 0 || !buckets.every((bucket) => this.has(bucket))) throw fencedFailure();
    return session.transaction(async () => {
      // READ COMMITTED checks the epochs again after it has waited for the locks.
      const sql = `SELECT 1 FROM mds.leases WHERE ${this.#condition(buckets)} ORDER BY bucket FOR KEY SHARE`;
      if ((await session.query(sql)).length < buckets.length) throw fencedFailure();
      return work();
    });
  }

  #condition(buckets: readonly number[]): string {
    return `(bucket, epoch) IN (${buckets.map((bucket) => `(${bucket}, ${this.#epochs.get(bucket)})`).join(", ")})`;
  }
}
