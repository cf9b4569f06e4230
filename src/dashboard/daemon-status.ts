import { type Confirmations, describeConfirmations } from "../model/status/confirmations.ts";
import type { ServeStatus } from "../model/status/serve-status.ts";
import { describeServiceCondition, type ServiceCondition } from "../model/status/service-condition.ts";
import { describeShareProblem, type ShareStatus } from "../model/status/share-status.ts";
import type { DiskStatus, StreamStatus, WithdrawalStatus } from "../model/status/warehouse-status.ts";
import { streamTable } from "../model/streams.ts";
import { formatTimestamp, type Micros } from "../model/time.ts";
import type { RecentError } from "../telemetry/recent-activity.ts";
import { DISK_FULL_WARNING_DAYS } from "../warehouse/tables/size-history.ts";
import type { DaemonState } from "./api-answers.ts";

interface DaemonStateOptions {
  /** The service has answered, and what to sync is known. */
  readonly isReady: boolean;
  readonly problem: string | undefined;
  readonly activity: string;
  /** Undefined while the warehouse cannot be read. */
  readonly streams: readonly StreamStatus[] | undefined;
  readonly confirmations?: Confirmations | undefined;
  /** By the service's clock. */
  readonly now: Micros;
  readonly disk?: DiskStatus | undefined;
  readonly withdrawals?: readonly WithdrawalStatus[] | undefined;
  readonly service?: ServiceCondition | undefined;
  readonly shared?: ShareStatus | undefined;
}

/** Describes the daemon's state in one sentence, the worst first. */
export function describeDaemonState({
  isReady,
  problem,
  activity,
  streams,
  confirmations,
  now,
  disk,
  withdrawals = [],
  service,
  shared,
}: DaemonStateOptions): DaemonState {
  if (problem !== undefined) return { tone: "ill", sentence: `Stuck: ${withoutFinalPeriod(problem)}.` };
  if (!isReady) return { tone: "busy", sentence: `Starting: ${withoutFinalPeriod(activity)}.` };
  if (!streams) return { tone: "busy", sentence: `Running: ${withoutFinalPeriod(activity)}.` };
  const open = sumOver(streams, (stream) => stream.open);
  const lost = sumOver(streams, (stream) => stream.lost);
  const forbidden = streams.filter(({ missing_scopes }) => missing_scopes.length > 0);
  const failing = streams.filter((stream) => stream.last_error !== null && !forbidden.includes(stream));
  const daysUntilFull = disk?.full_in_days ?? Number.POSITIVE_INFINITY;
  const isFilling = daysUntilFull < DISK_FULL_WARNING_DAYS;
  const limit = service && describeServiceCondition(service);
  const sharing = shared && describeShareProblem(shared);
  const remarks = [
    ...(limit === undefined ? [] : [limit]),
    ...(isFilling ? [`the disk will be full in ${countNoun(Math.floor(daysUntilFull), "day")}`] : []),
    ...(forbidden.length > 0 ? [`a scope is missing for ${joinStreams(forbidden)}`] : []),
    ...(failing.length > 0 ? [`the last attempt at ${joinStreams(failing)} failed`] : []),
    ...describeWithdrawals(withdrawals),
    ...(sharing === undefined ? [] : [sharing]),
  ];
  const stored = streams.filter(({ rows }) => rows > 0);
  const isEmpty = stored.length === 0;
  const isBusy =
    isEmpty ||
    open > 0 ||
    failing.length > 0 ||
    withdrawals.length > 0 ||
    forbidden.length > 0 ||
    isFilling ||
    limit !== undefined ||
    sharing !== undefined;
  const first =
    open > 0
      ? `${capitalize(withoutFinalPeriod(activity))}: ${countNoun(open, "range")} left to fetch`
      : isEmpty
        ? "Nothing is synced yet"
        : !stored.some(({ stream }) => streamTable[stream].kind !== "lookup")
          ? "Nothing but lookups is synced"
          : lost > 0
            ? `Complete except ${countNoun(lost, "range")} that the service no longer has`
            : "Complete";
  const confirmation = confirmations && describeConfirmations(confirmations, formatTimestamp(now));
  const sentences = [[first, ...remarks].join("; "), ...(confirmation ? [confirmation] : [])];
  return { tone: isBusy ? "busy" : "well", sentence: sentences.map((text) => `${text}.`).join(" ") };
}

function describeWithdrawals(withdrawals: readonly WithdrawalStatus[]): string[] {
  const [unconfirmed = [], believed = []] = [true, false].map((isOpen) =>
    withdrawals.filter(({ believed_at }) => (believed_at === null) === isOpen),
  );
  const countRows = (list: readonly WithdrawalStatus[]) =>
    countNoun(
      list.reduce((sum, { rows }) => sum + rows, 0),
      "row",
    );
  return [
    ...(unconfirmed.length > 0
      ? [`the service no longer serves ${countRows(unconfirmed)}, unconfirmed`]
      : []),
    ...(believed.length > 0 ? [`the service has withdrawn ${countRows(believed)} within a week`] : []),
  ];
}

function sumOver(streams: readonly StreamStatus[], of: (stream: StreamStatus) => number): number {
  return streams.reduce((total, stream) => total + of(stream), 0);
}

function countNoun(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

function joinStreams(streams: readonly StreamStatus[]): string {
  const words = streams.map(({ stream }) => stream.replaceAll("_", " "));
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

function withoutFinalPeriod(text: string): string {
  return text.trim().replace(/\.$/, "");
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

interface BackfillStatus {
  readonly percent: number;
  readonly rowsPerSecond: number;
  readonly secondsLeft: number | undefined;
}

/** What the dashboard may read of the daemon. Every method must return at once: pages call them often. */
export interface DaemonView {
  readonly version: string;
  readonly startedAt: Micros;
  /** The current time by the service's clock, or by this machine's until that is known. */
  now(): Micros;
  /** The warehouse is open and the service has answered. */
  isReady(): boolean;
  /** What the settings select is known. */
  hasSelection(): boolean;
  /** Why the daemon is unhealthy, in one line without secrets; undefined while it is healthy. */
  problem(): string | undefined;
  /** Neither REST nor the live feed gets answers at present. The daemon counts as unhealthy only after a while. */
  isCutOff(): boolean;
  /** What the daemon does now, as part of a sentence: `filling 12 gaps`, `following the live feed`. */
  activity(): string;
  /** How far the first fill of all gaps is; undefined when it is done, or before it begins. */
  backfill?(): BackfillStatus | undefined;
  /** Requests that ended in each of the last seconds, oldest first. */
  requestsPerSecond(): readonly number[];
  /** How the service bears the requests. */
  service(): ServiceCondition;
  /** How forwarding to the shared warehouse goes; undefined: there is none. */
  shared?(): ShareStatus | undefined;
  /** Newest first. */
  recentErrors(): readonly RecentError[];
  /** Who reads the warehouse through `serve`; undefined if the settings leave it out. */
  serve?(): ServeStatus | undefined;
}
