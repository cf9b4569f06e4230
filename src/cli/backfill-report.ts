import { formatInstant } from "../model/instant.ts";
import type { BackfillReport } from "../sync/backfill.ts";
import { numbersTable, wrapped } from "./report-text.ts";

/** What a run did, for people, on 80 columns. */
export function reportText(report: BackfillReport): string {
  const rows = report.streams.map(({ stream, inserted, changed, withdrawn, requests, open, rejected }) => [
    stream,
    count(inserted),
    count(changed + withdrawn),
    count(requests),
    count(open),
    count(rejected),
  ]);
  const head = ["stream", "new rows", "changed", "requests", "holes left", "rejects"];
  const lines = [numbersTable([head, ...rows])];
  for (const { stream, what, message } of report.problems) {
    lines.push(wrapped(`${stream}${what === undefined ? "" : ` (${what})`}: ${message}`, "- "));
  }
  const total = report.streams.reduce((sum, { inserted }) => sum + inserted, 0);
  lines.push(`${count(total)} new rows in ${report.seconds.toFixed(1)} s`);
  return `${lines.join("\n")}\n`;
}

/** The same for machines. */
export function reportJson(report: BackfillReport): string {
  return JSON.stringify(
    {
      finished_at: formatInstant(report.finishedAt),
      seconds: report.seconds,
      exit: report.exit,
      streams: report.streams.map(({ stream, inserted, changed, withdrawn, requests, open, rejected }) => ({
        stream,
        rows: inserted,
        changed,
        withdrawn,
        requests,
        open,
        rejected,
      })),
      problems: report.problems,
    },
    null,
    2,
  );
}

function count(value: number): string {
  return value.toLocaleString("en-US");
}
