import { SOON_FULL_DAYS } from "../../warehouse/read/size-history.ts";
import type { StreamStatus, WarehouseStatus } from "../../warehouse/read/status.ts";
import { isNews } from "../../warehouse/sqlite/crash-marker.ts";
import { ageText, briefCount, counted, countText, durationText, textTable, wrapped } from "./text.ts";

/** All there is to know about each stream, within 80 columns. */
export function statusReport(status: WarehouseStatus): string {
  const rows = status.streams.map((stream) => [
    stream.stream,
    stream.from_time?.slice(0, 10) ?? "-",
    stream.to_time ? minuteText(stream.to_time) : "-",
    countText(stream.rows),
    briefCount(stream.open),
    briefCount(stream.lost),
    stream.newest_age_s === null ? "-" : ageText(stream.newest_age_s),
  ]);
  const table = textTable(
    [["stream", "from", "covered to", "rows", "open", "lost", "newest"], ...rows],
    ["left", "left", "left", "right", "right", "right", "right"],
  );
  const head = wrapped(`${status.warehouse}, ${status.generated_at.slice(0, 19).replace("T", " ")} UTC`);
  return [head, "", table, "", ...notes(status)].join("\n");
}

/** `2026-11-15 02:24`, and the day alone where it ends at midnight. */
function minuteText(time: string): string {
  return time.includes("T00:00:00") ? time.slice(0, 10) : time.slice(0, 16).replace("T", " ");
}

function notes({ streams, generated_at, disk, jobs, last_crash }: WarehouseStatus): string[] {
  const lines = streams.flatMap((stream) => troubles(stream, generated_at));
  const failed = jobs
    .filter(({ outcome }) => outcome !== "ok")
    .map(({ job, outcome, ended_at }) =>
      wrapped(`the last run ended with ${outcome}, ${agoText(ended_at, generated_at)}`, `${job}  `),
    );
  const crashed =
    last_crash && isNews(last_crash, Date.parse(generated_at))
      ? [
          wrapped(
            `ended unexpectedly ${agoText(last_crash.at, generated_at)}: ${last_crash.line}`,
            "daemon  ",
          ),
        ]
      : [];
  return [...lines, ...failed, ...crashed, ...room(disk), wrapped(summary(streams))];
}

/** Worth a line only when it is time to act. */
function room({ full_in_days, free_bytes }: WarehouseStatus["disk"]): string[] {
  if (full_in_days === null || full_in_days >= SOON_FULL_DAYS) return [];
  const free = `${(free_bytes / 1024 ** 3).toFixed(1)} GiB are free`;
  return [wrapped(`the disk is full in ${full_in_days} days at the present growth: ${free}`)];
}

function troubles(stream: StreamStatus, generatedAt: string): string[] {
  const lines: string[] = [];
  if (stream.missing_scopes.length > 0) {
    lines.push(
      wrapped(
        `lacks ${stream.missing_scopes.join(" and ")}: have it added to the client's profile`,
        `${stream.stream}  `,
      ),
    );
  }
  if (stream.last_error !== null) {
    const at = stream.last_error_at;
    const age = at === null ? "" : `, ${agoText(at, generatedAt)}`;
    lines.push(wrapped(`last error${age}: ${oneLine(stream.last_error)}`, `${stream.stream}  `));
  }
  return lines;
}

function summary(streams: readonly StreamStatus[]): string {
  if (streams.every(({ from_time, open, lost }) => open + lost === 0 && from_time === null)) {
    return "No history is followed yet: `mds-sync backfill` fills the warehouse.";
  }
  const sum = (key: "open" | "open_seconds" | "lost" | "lost_seconds") =>
    streams.reduce((total, stream) => total + stream[key], 0);
  const open = sum("open");
  const lost = sum("lost");
  if (open + lost === 0) return "Nothing is missing.";
  const parts = [
    ...(open > 0 ? [`${counted(open, "range")} open (${durationText(sum("open_seconds"))} in all)`] : []),
    ...(lost > 0 ? [`${counted(lost, "range")} lost (${durationText(sum("lost_seconds"))})`] : []),
  ];
  return `${parts.join(", ")}: \`mds-sync gaps\` lists them.`;
}

function agoText(at: string, now: string): string {
  return `${ageText((Date.parse(now) - Date.parse(at)) / 1000)} ago`;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}
