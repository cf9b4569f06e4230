import { BUCKET_COUNT } from "../../model/buckets.ts";
import type { LeaseOptions, LeaseRow, Leases } from "./leases.ts";

/*
 * The daemons that share a selection. Each tells that it is there, and from who is there everybody computes the same
 * quotas: one that has more leases gives some back, one that has fewer takes what is free.
 */

export interface Balance {
  /** Leases beyond the quota: to be given back once what they cover is forwarded. */
  readonly surplus: readonly number[];
  /** Leases that may be taken now, up to the quota. */
  readonly free: readonly LeaseRow[];
}

/** This daemon among the others. */
export class Member {
  readonly #options: LeaseOptions;
  readonly #leases: Leases;
  readonly #joinedAt: number;

  constructor(options: LeaseOptions, leases: Leases) {
    this.#options = options;
    this.#leases = leases;
    this.#joinedAt = options.clock.monotonic();
  }

  /** Tells the others that this daemon is there, for as long as a lease lasts. An earlier start of it is there no more. */
  async register(): Promise<void> {
    const { session, holder, name, seconds } = this.#options;
    await session.query(
      `DELETE FROM mds.members m WHERE m.name = $2 AND m.holder <> $1
        AND NOT EXISTS (SELECT 1 FROM pg_stat_activity a WHERE a.application_name = m.holder)`,
      [holder, name],
    );
    await session.query(
      `INSERT INTO mds.members VALUES ($1, $2, clock_timestamp() + interval '${seconds} seconds')
      ON CONFLICT (holder) DO UPDATE SET until = excluded.until`,
      [holder, name],
    );
  }

  async leave(): Promise<void> {
    const { session, holder } = this.#options;
    await session.query("DELETE FROM mds.members WHERE holder = $1 OR until < clock_timestamp()", [holder]);
  }

  /** What to give back and what to take. */
  async findBalance(): Promise<Balance> {
    const rows = await this.#leases.read();
    const quota = await this.#readQuota();
    const own = this.#leases.buckets;
    const free = rows
      .filter(({ bucket, isFree }) => isFree && !this.#leases.has(bucket))
      .filter((row) => this.#mayTake(row))
      // First those that this daemon held before: it has their rows.
      .sort((a, b) => Number(b.name === this.#options.name) - Number(a.name === this.#options.name));
    return { surplus: own.slice(quota), free: free.slice(0, Math.max(0, quota - own.length)) };
  }

  /** After an outage of the database every lease has ended: each daemon gets the time to take its own again. */
  #mayTake({ holder, name }: LeaseRow): boolean {
    const { clock, seconds, name: own } = this.#options;
    return holder === "" || name === own || clock.monotonic() - this.#joinedAt >= seconds * 1000;
  }

  async #readQuota(): Promise<number> {
    const { session, holder } = this.#options;
    const members = await session.query<{ holder: string }>(
      "SELECT holder FROM mds.members WHERE until > clock_timestamp() ORDER BY name, holder",
    );
    const rank = members.findIndex((member) => member.holder === holder);
    if (rank < 0) return 0;
    const count = members.length;
    return Math.floor(BUCKET_COUNT / count) + (rank < BUCKET_COUNT % count ? 1 : 0);
  }
}
