import { describeConfirmations, gapStates } from "../../model/status/gap-state.ts";
import {
  describeFailureCode,
  describeRecentFailures,
  describeServiceCondition,
} from "../../model/status/service-condition.ts";
import { describeShare, listShareParts, type ShareStatus } from "../../model/status/share-status.ts";
import type {
  StatusReport,
  StreamStatus,
  WarehouseStatus,
  WithdrawalStatus,
} from "../../model/status/warehouse-status.ts";
import { CLOCK_TOLERANCE_MS, formatMoment } from "../../model/time.ts";
import { isRecentCrash } from "../../warehouse/sqlite/crash-marker.ts";
import { DISK_FULL_WARNING_DAYS } from "../../warehouse/tables/size-history.ts";
import {
  formatAge,
  formatBytes,
  formatDuration,
  formatShortCount,
  formatTable,
  pluralize,
  wrapText,
} from "./text.ts";

/** The text report lists this many; --json lists all. */
const MAX_WITHDRAWALS_SHOWN = 5;

/** The status of each stream as a table of 80 columns, followed by remarks. */
export function formatStatus(status: StatusReport): string {
  const rows = status.streams.map((stream) => [
    stream.stream,
    stream.from_time?.slice(0, 10) ?? "-",
    stream.to_time ? formatRecent(stream.to_time, status.generated_at) : "-",
    formatShortCount(stream.rows),
    ...gapStates.map((state) => formatShortCount(stream[state])),
    stream.newest_age_s === null ? "-" : formatShortAge(stream.newest_age_s),
  ]);
  const table = formatTable(
    [["stream", "from", "covered to", "rows", ...gapStates, "age"], ...rows],
    ["left", "left", "left", "right", "right", "right", "right", "right"],
  );
  const origin = status.service_url === null ? "" : ` of ${status.service_url}`;
  const head = wrapText(`${status.warehouse}${origin}, ${formatMoment(status.generated_at)} UTC`);
  return [head, "", table, "", ...remarkLines(status)].join("\n");
}

/** `2026-11-15 02:24`, or only the day at midnight. */
function formatMinute(time: string): string {
  return time.includes("T00:00:00") ? time.slice(0, 10) : formatMoment(time, "minute");
}

/** Only the minute if it is today, else only the day: the table has no more room. */
function formatRecent(time: string, now: string): string {
  return time.slice(0, 10) === now.slice(0, 10) ? time.slice(11, 16) : time.slice(0, 10);
}

/** In three characters: weeks from a hundred days on. */
function formatShortAge(seconds: number): string {
  const age = formatAge(seconds);
  return age.length > 3 ? `${Math.floor(seconds / (7 * 86_400))}w` : age;
}

/** What is said after the table, with what it is about before it; without a text it is left out. */
type Remark = readonly [lead: string, text: string | false | null | undefined];

function remarkLines(status: StatusReport): string[] {
  const { streams, generated_at, jobs, last_crash: crash, withdrawals, service, problem, shared } = status;
  const unlisted = withdrawals.length - MAX_WITHDRAWALS_SHOWN;
  const remarks: readonly Remark[] = [
    ["daemon  ", problem && toOneLine(problem)],
    ["service  ", service && describeServiceCondition(service)],
    ["service  ", service && describeRecentFailures(service)],
    ...(shared ? sharedRemarks(shared) : []),
    ...streams.flatMap((stream) => streamRemarks(stream, generated_at)),
    ...withdrawals.slice(0, MAX_WITHDRAWALS_SHOWN).map((one) => withdrawalRemark(one, generated_at)),
    ["  ", unlisted > 0 && `and ${unlisted} more withdrawals: --json lists all of them`],
    ...jobs.map(({ job, outcome, ended_at }): Remark => {
      const what = `the last run failed, ${formatAgo(ended_at, generated_at)}: ${describeFailureCode(outcome)}`;
      return [`${job}  `, outcome !== "ok" && what];
    }),
    [
      "daemon  ",
      crash &&
        isRecentCrash(crash, Date.parse(generated_at)) &&
        `ended unexpectedly ${formatAgo(crash.at, generated_at)}: ${crash.line}`,
    ],
    ["clock  ", clockWarning(status.clock_skew_s)],
    ["", diskWarning(status.disk)],
    ["", summarize(status)],
  ];
  return remarks.flatMap(([lead, text]) => (text ? [wrapText(text, lead)] : []));
}

function sharedRemarks(shared: ShareStatus): Remark[] {
  const { server, last_error } = shared;
  const error = last_error === null ? "" : `: ${last_error}`;
  return [
    ["shared  ", `${server} ${describeShare(shared, formatAge)}${error}`],
    ...listShareParts(shared, formatAge).map(
      ({ what, name, state }): Remark => ["        ", `${what} ${name}: ${state}`],
    ),
  ];
}

/** None while this machine's clock agrees with the service's. */
function clockWarning(skewSeconds: number): string | false {
  const difference = `${formatDuration(Math.abs(skewSeconds))} ${skewSeconds < 0 ? "ahead of" : "behind"}`;
  return (
    Math.abs(skewSeconds) * 1000 > CLOCK_TOLERANCE_MS &&
    `this machine's clock was ${difference} the service's at the last comparison: synchronise it with NTP`
  );
}

/** None unless the disk will be full soon. */
const diskWarning = ({ full_in_days, free_bytes }: WarehouseStatus["disk"]) =>
  full_in_days !== null &&
  full_in_days < DISK_FULL_WARNING_DAYS &&
  `the disk will be full in ${full_in_days} days at the current growth: ${formatBytes(free_bytes)} are free`;

function streamRemarks(stream: StreamStatus, generatedAt: string): Remark[] {
  const { missing_scopes: scopes, last_error: error, last_error_at: at, live_offset_ms: offset } = stream;
  const age = at === null ? "" : `, ${formatAgo(at, generatedAt)}`;
  const shift = offset !== null && `${Math.abs(offset)} ms ${offset > 0 ? "later" : "earlier"}`;
  const texts = [
    scopes.length > 0 && `lacks ${scopes.join(" and ")}: ask the provider to add it to the client's profile`,
    error !== null && `last error${age}: ${toOneLine(error)}`,
    shift && `the websocket stamps ticks ${shift} than REST; REST replaces them`,
  ];
  return texts.map((text) => [`${stream.stream}  `, text]);
}

function withdrawalRemark(withdrawal: WithdrawalStatus, generatedAt: string): Remark {
  const { stream, index_type, name, from_time, to_time, rows, answers, first_seen, believed_at } = withdrawal;
  const what = `${pluralize(rows, "row")} of ${index_type} ${name}, ${formatMinute(from_time)} to ${formatMinute(to_time)}`;
  const text =
    believed_at === null
      ? `the service no longer serves ${what}: unconfirmed after ${pluralize(answers, "answer")} since ${formatAgo(first_seen, generatedAt)}; the rows stay`
      : `the service has withdrawn ${what}, believed ${formatAgo(believed_at, generatedAt)}; the view revisions has the rows`;
  return [`${stream}  `, text];
}

function summarize({ streams, confirmations, generated_at, service }: StatusReport): string {
  if (streams.every(({ from_time, open, lost }) => open + lost === 0 && from_time === null)) {
    return "No history is synced yet: `mds-sync backfill` fills the warehouse.";
  }
  const describe = (state: "open" | "lost") => {
    const ranges = streams.reduce((sum, stream) => sum + stream[state], 0);
    const seconds = Math.max(...streams.map((stream) => stream[`${state}_max_seconds`]));
    return ranges > 0
      ? [`${pluralize(ranges, "range")} ${state}, at most ${formatDuration(seconds)} of a series`]
      : [];
  };
  const gaps = [...describe("open"), ...describe("lost")];
  const confirmation = describeConfirmations(confirmations, generated_at, service !== null);
  return [
    gaps.length > 0 ? `${gaps.join("; ")}: \`mds-sync gaps\` lists them.` : "Complete: nothing is missing.",
    ...(confirmation ? [`${confirmation}.`] : []),
  ].join(" ");
}

function formatAgo(at: string, now: string): string {
  return `${formatAge((Date.parse(now) - Date.parse(at)) / 1000)} ago`;
}

function toOneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}
