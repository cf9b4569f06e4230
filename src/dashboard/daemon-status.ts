import type { Micros } from "../model/time.ts";
import type { RecentError } from "../telemetry/recent-activity.ts";
import { SOON_FULL_DAYS } from "../warehouse/read/size-history.ts";
import type { DiskStatus, StreamStatus } from "../warehouse/read/status.ts";

/** `well`: nothing to do; `busy`: something is on its way or lacks a right; `ill`: somebody should look. */
export interface DaemonState {
  readonly tone: "well" | "busy" | "ill";
  /** The one sentence that says it all. */
  readonly sentence: string;
}

export interface StateFacts {
  readonly ready: boolean;
  readonly problem: string | undefined;
  readonly activity: string;
  /** Undefined while the warehouse cannot be read. */
  readonly streams: readonly StreamStatus[] | undefined;
  readonly disk?: DiskStatus | undefined;
}

/** The daemon's state as a person would tell it. */
export function describeState({ ready, problem, activity, streams, disk }: StateFacts): DaemonState {
  if (problem !== undefined) return { tone: "ill", sentence: `Stuck: ${unpointed(problem)}.` };
  if (!ready) return { tone: "busy", sentence: `Starting: ${unpointed(activity)}.` };
  if (!streams) return { tone: "busy", sentence: `Running: ${unpointed(activity)}.` };
  const open = sum(streams, (stream) => stream.open);
  const lost = sum(streams, (stream) => stream.lost);
  const forbidden = streams.filter(({ missing_scopes }) => missing_scopes.length > 0);
  const failing = streams.filter((stream) => stream.last_error !== null && !forbidden.includes(stream));
  const fullIn = disk?.full_in_days ?? Number.POSITIVE_INFINITY;
  const isFilling = fullIn < SOON_FULL_DAYS;
  const remarks = [
    ...(isFilling ? [`the disk will be full in ${count(Math.floor(fullIn), "day")}`] : []),
    ...(forbidden.length > 0 ? [`a scope is missing for ${list(forbidden)}`] : []),
    ...(failing.length > 0 ? [`the last attempt at ${list(failing)} failed`] : []),
  ];
  const busy = open > 0 || failing.length > 0 || forbidden.length > 0 || isFilling;
  const first =
    open > 0
      ? `${capital(unpointed(activity))}: ${count(open, "range")} left to fetch`
      : lost > 0
        ? `Everything is in place but ${count(lost, "range")} that the service no longer has`
        : "Everything is in place";
  return { tone: busy ? "busy" : "well", sentence: `${[first, ...remarks].join("; ")}.` };
}

function sum(streams: readonly StreamStatus[], of: (stream: StreamStatus) => number): number {
  return streams.reduce((total, stream) => total + of(stream), 0);
}

function count(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

function list(streams: readonly StreamStatus[]): string {
  const words = streams.map(({ stream }) => stream.replaceAll("_", " "));
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

function unpointed(text: string): string {
  return text.trim().replace(/\.$/, "");
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

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
