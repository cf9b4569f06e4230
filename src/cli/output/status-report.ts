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
import { CLOCK_TOLERANCE_MS } from "../../model/time.ts";
import { isRecentCrash } from "../../warehouse/sqlite/crash-marker.ts";
import { DISK_FULL_WARNING_DAYS } from "../../warehouse/tables/size-history.ts";
import {
  describeUnconfirmed,
  formatAge,
  formatBytes,
  formatCount,
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
    stream.to_time ? formatMinute(stream.to_time) : "-",
    formatCount(stream.rows),
    formatShortCount(stream.open),
    formatShortCount(stream.lost),
    stream.newest_age_s === null ? "-" : formatAge(stream.newest_age_s),
  ]);
  const table = formatTable(
    [["stream", "from", "covered to", "rows", "open", "lost", "newest"], ...rows],
    ["left", "left", "left", "right", "right", "right", "right"],
  );
  const origin = status.service_url === null ? "" : ` of ${status.service_url}`;
  const head = wrapText(
    `${status.warehouse}${origin}, ${status.generated_at.slice(0, 19).replace("T", " ")} UTC`,
  );
  return [head, "", table, "", ...remarkLines(status)].join("\n");
}

/** `2026-11-15 02:24`, or only the day at midnight. */
function formatMinute(time: string): string {
  return time.includes("T00:00:00") ? time.slice(0, 10) : time.slice(0, 16).replace("T", " ");
}

function remarkLines(status: StatusReport): string[] {
  const { streams, generated_at, disk, jobs, last_crash, withdrawals, service, problem, shared } = status;
  const lines = [
    ...streams.flatMap((stream) => streamProblems(stream, generated_at)),
    ...withdrawals
      .slice(0, MAX_WITHDRAWALS_SHOWN)
      .map((withdrawal) => withdrawalLine(withdrawal, generated_at)),
    ...(withdrawals.length > MAX_WITHDRAWALS_SHOWN
      ? [`  and ${withdrawals.length - MAX_WITHDRAWALS_SHOWN} more withdrawals: --json lists all of them`]
      : []),
  ];
  const failed = jobs
    .filter(({ outcome }) => outcome !== "ok")
    .map(({ job, outcome, ended_at }) =>
      wrapText(
        `the last run failed, ${formatAgo(ended_at, generated_at)}: ${describeFailureCode(outcome)}`,
        `${job}  `,
      ),
    );
  const crashed =
    last_crash && isRecentCrash(last_crash, Date.parse(generated_at))
      ? [
          wrapText(
            `ended unexpectedly ${formatAgo(last_crash.at, generated_at)}: ${last_crash.line}`,
            "daemon  ",
          ),
        ]
      : [];
  const limit = service ? describeServiceCondition(service) : undefined;
  const retried = service ? describeRecentFailures(service) : undefined;
  const limited = [limit, retried].flatMap((text) =>
    text === undefined ? [] : [wrapText(text, "service  ")],
  );
  const unhealthy = problem === null ? [] : [wrapText(toOneLine(problem), "daemon  ")];
  return [
    ...unhealthy,
    ...limited,
    ...sharedLine(shared ?? null),
    ...lines,
    ...failed,
    ...crashed,
    ...clockWarning(status.clock_skew_s),
    ...diskWarning(disk),
    wrapText(summarize(streams)),
  ];
}

function sharedLine(shared: ShareStatus | null): string[] {
  if (!shared) return [];
  const { server, last_error } = shared;
  const error = last_error === null ? "" : `: ${last_error}`;
  return [
    wrapText(`${server} ${describeShare(shared, formatAge)}${error}`, "shared  "),
    ...listShareParts(shared, formatAge).map(({ what, name, state }) =>
      wrapText(`${what} ${name}: ${state}`, "        "),
    ),
  ];
}

/** Empty while this machine's clock agrees with the service's. */
function clockWarning(skewSeconds: number): string[] {
  if (Math.abs(skewSeconds) * 1000 <= CLOCK_TOLERANCE_MS) return [];
  const difference = `${formatDuration(Math.abs(skewSeconds))} ${skewSeconds < 0 ? "ahead of" : "behind"}`;
  const what = `this machine's clock was ${difference} the service's at the last comparison`;
  return [wrapText(`${what}: synchronise it with NTP`, "clock  ")];
}

/** Empty unless the disk will be full soon. */
function diskWarning({ full_in_days, free_bytes }: WarehouseStatus["disk"]): string[] {
  if (full_in_days === null || full_in_days >= DISK_FULL_WARNING_DAYS) return [];
  const free = `${formatBytes(free_bytes)} are free`;
  return [wrapText(`the disk will be full in ${full_in_days} days at the current growth: ${free}`)];
}

function streamProblems(stream: StreamStatus, generatedAt: string): string[] {
  const lines: string[] = [];
  if (stream.missing_scopes.length > 0) {
    lines.push(
      wrapText(
        `lacks ${stream.missing_scopes.join(" and ")}: ask the provider to add it to the client's profile`,
        `${stream.stream}  `,
      ),
    );
  }
  if (stream.last_error !== null) {
    const at = stream.last_error_at;
    const age = at === null ? "" : `, ${formatAgo(at, generatedAt)}`;
    lines.push(wrapText(`last error${age}: ${toOneLine(stream.last_error)}`, `${stream.stream}  `));
  }
  if (stream.live_offset_ms !== null) {
    const direction = stream.live_offset_ms > 0 ? "later" : "earlier";
    const offset = `${Math.abs(stream.live_offset_ms)} ms ${direction}`;
    lines.push(
      wrapText(`the websocket stamps ticks ${offset} than REST; REST replaces them`, `${stream.stream}  `),
    );
  }
  if (stream.unconfirmed > 0)
    lines.push(wrapText(describeUnconfirmed(stream.unconfirmed), `${stream.stream}  `));
  return lines;
}

function withdrawalLine(withdrawal: WithdrawalStatus, generatedAt: string): string {
  const { stream, index_type, name, from_time, to_time, rows, answers, first_seen, believed_at } = withdrawal;
  const what = `${pluralize(rows, "row")} of ${index_type} ${name}, ${formatMinute(from_time)} to ${formatMinute(to_time)}`;
  const text =
    believed_at === null
      ? `the service no longer serves ${what}: unconfirmed after ${pluralize(answers, "answer")} since ${formatAgo(first_seen, generatedAt)}; the rows stay`
      : `the service has withdrawn ${what}, believed ${formatAgo(believed_at, generatedAt)}; the view revisions has the rows`;
  return wrapText(text, `${stream}  `);
}

function summarize(streams: readonly StreamStatus[]): string {
  if (streams.every(({ from_time, open, lost }) => open + lost === 0 && from_time === null)) {
    return "No history is synced yet: `mds-sync backfill` fills the warehouse.";
  }
  const sum = (key: "open" | "open_seconds" | "lost" | "lost_seconds") =>
    streams.reduce((total, stream) => total + stream[key], 0);
  const open = sum("open");
  const lost = sum("lost");
  if (open + lost === 0) return "Nothing is missing.";
  const parts = [
    ...(open > 0 ? [`${pluralize(open, "range")} open (${formatDuration(sum("open_seconds"))} in all)`] : []),
    ...(lost > 0 ? [`${pluralize(lost, "range")} lost (${formatDuration(sum("lost_seconds"))})`] : []),
  ];
  return `${parts.join(", ")}: \`mds-sync gaps\` lists them.`;
}

function formatAgo(at: string, now: string): string {
  return `${formatAge((Date.parse(now) - Date.parse(at)) / 1000)} ago`;
}

function toOneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}
