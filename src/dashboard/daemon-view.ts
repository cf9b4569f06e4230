import type { Micros } from "../model/instant.ts";
import type { RecentError } from "../telemetry/recent-activity.ts";

/** What the daemon lets those see who look on. Every answer must be at hand: pages ask often and wait for nothing. */
export interface DaemonView {
  readonly version: string;
  readonly startedAt: Micros;
  /** This moment, by the service's clock as far as it is known. */
  now(): Micros;
  /** The warehouse is open and the service has answered. */
  ready(): boolean;
  /** Why the daemon does not do its work, in one line without secrets; undefined while it does. */
  problem(): string | undefined;
  /** What it is about, as the middle of a sentence: `filling 12 holes`, `following the live feed`. */
  activity(): string;
  /** Requests that ended in each of the last seconds, the oldest first. */
  requestsPerSecond(): readonly number[];
  /** The newest first. */
  recentErrors(): readonly RecentError[];
}
