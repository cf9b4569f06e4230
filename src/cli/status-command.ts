import type { Command } from "commander";
import { MICROS_PER_MS } from "../model/instant.ts";
import type { StreamStatus, WarehouseStatus } from "../warehouse/status.ts";
import type { CommandContext } from "./command-context.ts";
import { ageText, durationText } from "./duration-text.ts";
import { briefCount, counted, countText, textTable, wrapped } from "./report-text.ts";
import { addSettingsFlags, settingsFor } from "./settings-flags.ts";

export function addStatusCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("status"))
    .summary("show per stream what is covered, what is missing, and how fresh it is")
    .description(
      "Shows for each stream what is covered, how many rows there are, the ranges still open, the ranges lost, the age of\n" +
        "the newest row, the last error and the scopes that are missing. Works whether or not a daemon runs.\n" +
        "Exits 0 when it could tell, whatever it told; 4 when there is no warehouse yet.",
    )
    .option("--json", "one JSON object: generated_at, warehouse, streams")
    .action(async (options: { json?: boolean }, command: Command) => {
      const { settings } = settingsFor(command, context);
      // Loaded when it runs: no other command waits for SQLite.
      const { lookOn } = await import("../warehouse/reader.ts");
      const { readStatus } = await import("../warehouse/status.ts");
      const now = Math.round(context.clock.now() * MICROS_PER_MS);
      const status = lookOn(settings.warehouse.path, (connection) => readStatus(connection, now));
      context.stdout.write(`${options.json ? JSON.stringify(status, null, 2) : report(status)}\n`);
    });
}

function report(status: WarehouseStatus): string {
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

function notes({ streams, generated_at }: WarehouseStatus): string[] {
  const lines = streams.flatMap((stream) => troubles(stream, generated_at));
  return [...lines, wrapped(summary(streams))];
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
    const age = at === null ? "" : `, ${ageText((Date.parse(generatedAt) - Date.parse(at)) / 1000)} ago`;
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

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}
