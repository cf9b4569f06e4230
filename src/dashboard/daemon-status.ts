import { describeConfirmations } from "../model/status/gap-state.ts";
import { describeServiceCondition, type ServiceCondition } from "../model/status/service-condition.ts";
import { describeShareProblem, type ServeStatus, type ShareStatus } from "../model/status/share-status.ts";
import type { StreamStatus, WarehouseStatus, WithdrawalStatus } from "../model/status/warehouse-status.ts";
import { streamTable } from "../model/streams.ts";
import { formatTimestamp, type Micros } from "../model/time.ts";
import type { RecentError } from "../telemetry/recent-activity.ts";
import { DISK_FULL_WARNING_DAYS } from "../warehouse/tables/size-history.ts";
import type { BackfillAnswer, DaemonState } from "./api-answers.ts";

/** Describes the daemon's state in one sentence, the worst first. Without `status` the warehouse cannot be read. */
export function describeDaemonState(
  view: Pick<DaemonView, "isReady" | "hasSelection" | "problem" | "activity" | "now" | "service" | "shared">,
  status?: Pick<WarehouseStatus, "streams" | "confirmations" | "disk" | "withdrawals">,
): DaemonState {
  const [problem, activity] = [view.problem(), withoutFinalPeriod(view.activity())];
  if (problem !== undefined) return { tone: "ill", sentence: `Stuck: ${withoutFinalPeriod(problem)}.` };
  if (!view.isReady() || !view.hasSelection()) return { tone: "busy", sentence: `Starting: ${activity}.` };
  if (!status) return { tone: "busy", sentence: `Running: ${activity}.` };
  const { streams, disk, withdrawals, confirmations } = status;
  const open = streams.reduce((sum, stream) => sum + stream.open, 0);
  const lost = streams.reduce((sum, stream) => sum + stream.lost, 0);
  const forbidden = streams.filter(({ missing_scopes }) => missing_scopes.length > 0);
  const failing = streams.filter((stream) => stream.last_error !== null && !forbidden.includes(stream));
  const daysUntilFull = disk.full_in_days ?? Number.POSITIVE_INFINITY;
  const shared = view.shared?.();
  const remarks = [
    describeServiceCondition(view.service()),
    daysUntilFull < DISK_FULL_WARNING_DAYS
      ? `the disk will be full in ${countNoun(Math.floor(daysUntilFull), "day")}`
      : undefined,
    forbidden.length > 0 ? `a scope is missing for ${joinStreams(forbidden)}` : undefined,
    failing.length > 0 ? `the last attempt at ${joinStreams(failing)} failed` : undefined,
    ...describeWithdrawals(withdrawals),
    shared && describeShareProblem(shared),
  ].filter((remark) => remark !== undefined);
  const stored = streams.filter(({ rows }) => rows > 0);
  const isEmpty = stored.length === 0;
  const first =
    open > 0
      ? `${capitalize(activity)}: ${countNoun(open, "range")} left to fetch`
      : isEmpty
        ? "Nothing is synced yet"
        : !stored.some(({ stream }) => streamTable[stream].kind !== "lookup")
          ? "Nothing but lookups is synced"
          : lost > 0
            ? `Complete except ${countNoun(lost, "range")} that the service no longer has`
            : "Complete";
  const confirmation = describeConfirmations(confirmations, formatTimestamp(view.now()));
  const sentences = [[first, ...remarks].join("; "), ...(confirmation ? [confirmation] : [])];
  const isBusy = isEmpty || open > 0 || remarks.length > 0;
  return { tone: isBusy ? "busy" : "well", sentence: sentences.map((text) => `${text}.`).join(" ") };
}

function describeWithdrawals(withdrawals: readonly WithdrawalStatus[]): string[] {
  const { believed, unconfirmed } = Object.groupBy(withdrawals, ({ believed_at }) =>
    believed_at === null ? "unconfirmed" : "believed",
  );
  const sumRows = (own: readonly WithdrawalStatus[]) => own.reduce((sum, { rows }) => sum + rows, 0);
  return [
    ...(unconfirmed
      ? [`the service no longer serves ${countNoun(sumRows(unconfirmed), "row")}, unconfirmed`]
      : []),
    ...(believed ? [`the service has withdrawn ${countNoun(sumRows(believed), "row")} within a week`] : []),
  ];
}

const countNoun = (number: number, noun: string): string =>
  `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/** a, b and c */
const joinStreams = (streams: readonly StreamStatus[]): string =>
  new Intl.ListFormat("en-GB").format(streams.map(({ stream }) => stream.replaceAll("_", " ")));

const withoutFinalPeriod = (text: string): string => text.trim().replace(/\.$/, "");

const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** What the dashboard may read of the daemon. Every method must return at once: pages call them often. */
export interface DaemonView {
  readonly version: string;
  readonly startedAt: Micros;
  /** The current time by the service's clock, or by this machine's until that is known. */
  now(): Micros;
  /** The warehouse is open and the service has answered. */
  isReady(): boolean;
  hasSelection(): boolean;
  /** Why the daemon is unhealthy, in one line without secrets; undefined while it is healthy. */
  problem(): string | undefined;
  /** Neither REST nor the live feed gets answers at present. The daemon counts as unhealthy only after a while. */
  isCutOff(): boolean;
  /** What the daemon does now, as part of a sentence: `filling 12 gaps`, `following the live feed`. */
  activity(): string;
  /** How far the first fill of all gaps is; undefined when it is done, or before it begins. */
  backfill?(): BackfillAnswer | undefined;
  /** Requests that ended in each of the last seconds, oldest first. */
  requestsPerSecond(): readonly number[];
  service(): ServiceCondition;
  /** How forwarding to the shared warehouse goes; undefined: there is none. */
  shared?(): ShareStatus | undefined;
  recentErrors(): readonly RecentError[];
  /** Who reads the warehouse through `serve`; undefined if the settings leave it out. */
  serve?(): ServeStatus | undefined;
}
