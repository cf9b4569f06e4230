import type { Command } from "commander";
import { exitCode, Failure } from "../../model/failure.ts";
import { describeConfirmations } from "../../model/status/confirmations.ts";
import { formatTimestamp, MICROS_PER_SECOND } from "../../model/time.ts";
import type { BackfillReport } from "../../sync/history/backfill.ts";
import type { NightlyResult } from "../../sync/history/nightly-check.ts";
import type { UnselectedSeries } from "../../sync/selection/named-series.ts";
import { isTerminal, showProgress } from "../output/progress-bar.ts";
import {
  formatDuration,
  formatNumber,
  formatNumberTable,
  formatProblems,
  pluralize,
  wrapText,
} from "../output/text.ts";
import { type CommandContext, incompleteFailure, usageFailure } from "../support/context.ts";
import { backfillThroughDaemon } from "../support/daemon-backfill.ts";
import {
  ADOPT_OPTION,
  addSettingsFlags,
  createCommandLogger,
  loadSettingsAndWarn,
  logLevelOption,
} from "../support/flags.ts";
import {
  addSelectionFlags,
  readSelection,
  type SelectionFlags,
  toRunFilter,
} from "../support/selection-flags.ts";

/** The report for people, within 80 columns. */
function formatReport(report: BackfillReport): string {
  const rows = report.streams.map(({ stream, inserted, changed, withdrawn, requests, open, rejected }) => [
    stream,
    formatNumber(inserted),
    formatNumber(changed + withdrawn),
    formatNumber(requests),
    formatNumber(open),
    formatNumber(rejected),
  ]);
  const head = ["stream", "new rows", "changed", "requests", "gaps left", "rejects"];
  const lines = [formatNumberTable([head, ...rows]), ...formatProblems(report.problems)];
  for (const { stream, unpublished, unpublishedMicros } of report.streams) {
    if (unpublished === 0) continue;
    const heads = pluralize(unpublished, "head");
    const longest = formatDuration(unpublishedMicros / MICROS_PER_SECOND);
    const line = `${heads} not published yet by the service, at most ${longest}: a later run fetches the rest`;
    lines.push(wrapText(line, `${stream}  `));
  }
  const confirmation = describeConfirmations(report.confirmations, formatTimestamp(report.finishedAt), false);
  if (confirmation) lines.push(wrapText(confirmation, "- "));
  if (report.night) lines.push(...describeNight(report.night).map((line) => wrapText(line, "- ")));
  for (const series of report.notSelected) lines.push(wrapText(describeUnselected(series), "- "));
  const total = report.streams.reduce((sum, { inserted }) => sum + inserted, 0);
  lines.push(`${formatNumber(total)} new rows in ${report.seconds.toFixed(1)} s`);
  return `${lines.join("\n")}\n`;
}

/** What was asked once more today, in one line each for ranges and ends. */
function describeNight({ comparison: { sliceCount, differences }, nights, ends }: NightlyResult): string[] {
  const { missing, changed, withdrawn } = countDifferences(differences);
  const found = `${formatNumber(missing)} rows were missing, ${formatNumber(changed)} differed, ${formatNumber(withdrawn)} are no longer served`;
  const turn = nights === 1 ? "all of them" : `all of them in ${nights} nights`;
  const older =
    ends.reopened === 0
      ? "none has older records"
      : pluralize(ends.reopened, "has older records now", "have older records now");
  const failed = ends.unanswered === 0 ? "" : `, ${formatNumber(ends.unanswered)} not answered`;
  return [
    `${pluralize(sliceCount, "settled range")} compared with the service (${turn}): ${found}`,
    ...(ends.asked > 0
      ? [
          `${pluralize(ends.asked, "end of a history", "ends of histories")} asked about again: ${older}${failed}`,
        ]
      : []),
  ];
}

function countDifferences(differences: NightlyResult["comparison"]["differences"]) {
  const sum = (name: "missing" | "changed" | "withdrawn" | "unconfirmed") =>
    differences.reduce((total, difference) => total + difference[name], 0);
  return {
    missing: sum("missing"),
    changed: sum("changed"),
    withdrawn: sum("withdrawn"),
    unconfirmed: sum("unconfirmed"),
  };
}

/** The report for `--json`. */
function toReportJson(report: BackfillReport): string {
  return JSON.stringify(
    {
      finished_at: formatTimestamp(report.finishedAt),
      seconds: report.seconds,
      exit: report.exit,
      streams: report.streams.map(
        ({ stream, inserted, changed, withdrawn, requests, rejected, ...gaps }) => ({
          stream,
          rows: inserted,
          changed,
          withdrawn,
          requests,
          open: gaps.open,
          not_published_yet: gaps.unpublished,
          not_published_seconds: Math.round(gaps.unpublishedMicros / MICROS_PER_SECOND),
          unconfirmed: gaps.unconfirmed,
          rejected,
        }),
      ),
      confirmations: report.confirmations,
      problems: report.problems,
      compared: report.night ? toNightJson(report.night) : null,
      not_selected: toUnselectedJson(report.notSelected),
    },
    null,
    2,
  );
}

export function toUnselectedJson(notSelected: readonly UnselectedSeries[]) {
  return notSelected.map(({ name, indexType, indexId, streams }) => ({
    name,
    index_type: indexType,
    index_id: indexId,
    streams,
  }));
}

function toNightJson({ comparison, nights, ends }: NightlyResult) {
  const { sliceCount, rows, differences } = comparison;
  return {
    ranges: sliceCount,
    nights,
    rows,
    ...countDifferences(differences),
    ends: { asked: ends.asked, reopened: ends.reopened, not_answered: ends.unanswered },
  };
}

/** A series that the settings select for a part of the streams only. */
export function describeUnselected({ name, indexType, streams }: UnselectedSeries): string {
  return `${name} (${indexType}) is not selected for ${streams.join(" and ")}: backfill --fetch fetches it once`;
}

/** Why the run does not count as complete; undefined if it does. */
function findFailure({ notSelected, problems, exit }: BackfillReport): Failure | undefined {
  const [unselected] = notSelected.filter(({ isSelectedElsewhere }) => !isSelectedElsewhere);
  if (unselected && problems.length === 0)
    return incompleteFailure(
      `the settings do not select ${unselected.name}: nothing of it was fetched`,
      "--fetch fetches it once; list it under `sync` to follow it",
    );
  if (exit === exitCode.ok) return undefined;
  return incompleteFailure(
    problems.length > 0 ? "not everything selected could be synced" : "some records or ranges are missing",
  );
}

/** A daemon that holds the warehouse can do the work itself. */
function suggestNow(error: unknown): never {
  if (!(error instanceof Failure) || error.code !== "writer_elsewhere") throw error;
  throw new Failure(error.message, {
    code: error.code,
    remedy: "if it is a daemon, `mds-sync backfill --now` lets it do the work; else run it again later",
    cause: error,
  });
}

interface BackfillFlags extends SelectionFlags {
  fetch?: boolean;
  json?: boolean;
  adopt?: boolean;
  progress: boolean;
  logLevel?: string;
  now?: boolean;
  quiet?: boolean;
}

export function addBackfillCommand(program: Command, context: CommandContext): void {
  addSelectionFlags(addSettingsFlags(program.command("backfill"), "service", "warehouse"))
    .description(
      "Refreshes the lookups, fills every gap of what the settings select, takes one snapshot of each snapshot stream, " +
        "prints a report, and exits. The first run of each day also compares a part of what is settled with the service. With nothing missing, a second run fetches almost nothing and changes no row. " +
        "An interrupted run resumes where it stopped. The options limit what this run fills, not the targets of the settings.",
    )
    .option("--fetch", "with --series: fetch it once even if the settings do not select it")
    .option("--now", "if a daemon runs on this warehouse, let it do the work, by its settings")
    .option(...ADOPT_OPTION)
    .option("--json", "the report as one JSON object")
    .option("--quiet", "print the report only if the exit code is not 0: for cron")
    .option("--no-progress", "show no progress bars and log no progress")
    .option(...logLevelOption("; info, or warn beside progress bars"))
    .action(async (flags: BackfillFlags, command: Command) => {
      const loaded = loadSettingsAndWarn(command, context);
      const selection = toRunFilter(readSelection(flags, context.clock));
      if (flags.fetch && !selection.series)
        throw usageFailure("--fetch needs --series", "without it the settings decide what is fetched");
      const hasBars = flags.progress && isTerminal(context.stderr);
      const log = createCommandLogger(flags.logLevel ?? (hasBars ? "warn" : "info"), context.stderr);
      const filter = { ...selection, fetchesUnselected: flags.fetch };
      const sessionContext = { ...context, mayAdopt: flags.adopt ?? false };
      const fillHere = async () => {
        const { backfill } = await import("../../sync/history/backfill.ts");
        const { toSyncSettings, withSyncSession } = await import("../support/session.ts");
        return withSyncSession(loaded, sessionContext, log, async ({ syncContext, reader, random }) => {
          const progress = flags.progress ? showProgress(syncContext, context.stderr) : undefined;
          try {
            return await backfill(syncContext, {
              settings: toSyncSettings(loaded),
              reader,
              random,
              filter,
            });
          } finally {
            progress?.end();
          }
        });
      };
      const fillThere = () =>
        backfillThroughDaemon({
          warehousePath: loaded.settings.warehouse.path,
          request: filter,
          stopping: context.stopping,
          onProgress: (rows, percent) => {
            if (flags.progress) log.info({ rows, percent }, "backfill in progress");
          },
        });
      const report = (flags.now ? await fillThere() : undefined) ?? (await fillHere().catch(suggestNow));
      const failure = findFailure(report);
      if (!flags.quiet || failure)
        context.stdout.write(flags.json ? `${toReportJson(report)}\n` : formatReport(report));
      if (failure) throw failure;
    });
}
