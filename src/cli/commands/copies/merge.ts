import { resolve } from "node:path";
import type { Command } from "commander";
import { Failure } from "../../../model/failure.ts";
import { streams } from "../../../model/streams.ts";
import { MICROS_PER_SECOND } from "../../../model/time.ts";
import { openForBackup } from "../../../warehouse/backup.ts";
import type { MergeCounts } from "../../../warehouse/merge/merge-plan.ts";
import { attachSource } from "../../../warehouse/merge/merge-source.ts";
import {
  type MergeProgress,
  type MergeReport,
  mergeWarehouse,
  planMerge,
} from "../../../warehouse/merge/merge-warehouse.ts";
import { withReader } from "../../../warehouse/reader.ts";
import { resolvePath } from "../../../warehouse/sqlite/disk.ts";
import { openWriter } from "../../../warehouse/writer.ts";
import { drawBars, isTerminal } from "../../output/progress-bar.ts";
import { formatDuration, formatNumber, formatNumberTable } from "../../output/text.ts";
import type { CommandContext } from "../../support/context.ts";
import { addSettingsFlags, createCommandLogger, loadSettingsAndWarn } from "../../support/flags.ts";

interface MergeFlags {
  dryRun?: boolean;
  json?: boolean;
  progress: boolean;
}

export function addMergeCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(
    program.command("merge").argument("<file>", "another warehouse of the same service"),
    "warehouse",
  )
    .description(
      "Adds what another warehouse of the same service has and this one lacks: rows with their proof, of every stream, and " +
        "lookups, revisions and rejects. What is `lost` here and covered there is covered afterwards. Where both are covered, " +
        "the rows of this warehouse stay; where only the other is, its rows replace uncovered ones, which go to `revisions`. " +
        "Nothing covered changes, so a second merge changes nothing. A killed merge is completed by the next one. No daemon " +
        "may run meanwhile (exit 75). FILE stays as it is.",
    )
    .option("--dry-run", "only report what would be added; works beside a running daemon")
    .option("--json", "one JSON object: warehouse, file, dry_run, streams, revisions, rejects")
    .option("--no-progress", "show no progress bars")
    .action(async (given: string, flags: MergeFlags, command: Command) => {
      const { path } = loadSettingsAndWarn(command, context).settings.warehouse;
      const warehouse = resolvePath(resolve(context.directory, path));
      const file = resolve(context.directory, given);
      const report = flags.dryRun
        ? { streams: planInto(warehouse, file), revisions: 0, rejects: 0 }
        : await mergeInto(warehouse, file, flags, context);
      context.stdout.write(
        flags.json
          ? `${toMergeJson(warehouse, file, report, flags.dryRun ?? false)}\n`
          : formatMergeReport(report, flags.dryRun ?? false),
      );
    });
}

function planInto(warehouse: string, file: string): MergeCounts {
  return withReader(warehouse, (reader) => {
    const source = attachSource(reader, file);
    try {
      return planMerge(reader);
    } finally {
      source.detach();
    }
  });
}

async function mergeInto(
  path: string,
  file: string,
  flags: MergeFlags,
  context: CommandContext,
): Promise<MergeReport> {
  const { clock, stderr, stopping } = context;
  // Opening for writing would create a missing file or replace a damaged one; an older version is upgraded.
  openForBackup(path).close();
  const warehouse = openWriter(path, { clock, log: createCommandLogger("warn", stderr) });
  try {
    const source = attachSource(warehouse.connection, file);
    try {
      const shown = new Map<string, MergeProgress>();
      const bars =
        flags.progress && isTerminal(stderr)
          ? drawBars(clock, stderr, () =>
              [...shown].map(([stream, { done, planned }]) => [stream, { rows: done, done, planned }]),
            )
          : undefined;
      try {
        const merge = mergeWarehouse(warehouse);
        for (let step = merge.next(); ; step = merge.next()) {
          if (step.done) return step.value;
          shown.set(step.value.stream, step.value);
          // Lets the bars be drawn and signals be handled.
          await clock.sleep(0);
          if (stopping.aborted) throw interruptedFailure();
        }
      } finally {
        bars?.end();
      }
    } finally {
      source.detach();
    }
  } finally {
    warehouse.close();
  }
}

function interruptedFailure(): Failure {
  return new Failure("the merge was stopped before it was complete", {
    family: "retry",
    code: "stopped",
    remedy: "run it again: what is merged stays, and the rest follows",
  });
}

function formatMergeReport({ streams: counts, revisions, rejects }: MergeReport, isDryRun: boolean): string {
  const head = ["stream", "new rows", "replaced", "withdrawn", "time covered"];
  const rows = streams.map((stream) => {
    const { rows: added, replaced, withdrawn, micros } = counts[stream];
    const covered = micros === 0 ? "-" : formatDuration(micros / MICROS_PER_SECOND);
    return [stream, formatNumber(added), formatNumber(replaced), formatNumber(withdrawn), covered];
  });
  const last = isDryRun
    ? "nothing was changed: without --dry-run this is merged"
    : `${formatNumber(revisions)} revisions and ${formatNumber(rejects)} rejects added`;
  return `${formatNumberTable([head, ...rows])}\n${last}\n`;
}

function toMergeJson(
  warehouse: string,
  file: string,
  { streams: counts, revisions, rejects }: MergeReport,
  isDryRun: boolean,
): string {
  const shown = streams.map((stream) => {
    const { rows, replaced, withdrawn, micros } = counts[stream];
    return { stream, rows, replaced, withdrawn, seconds: Math.round(micros / MICROS_PER_SECOND) };
  });
  return JSON.stringify({ warehouse, file, dry_run: isDryRun, streams: shown, revisions, rejects }, null, 2);
}
