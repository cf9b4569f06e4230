import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import type { Command } from "commander";
import {
  type BackfillLine,
  CONTROL_PATH,
  type ControlAddress,
  controlFileOf,
} from "../../daemon/control-server.ts";
import { deserialiseFailure, errorCode, exitCode, Failure, usageFailure } from "../../model/failure.ts";
import { describeConfirmations } from "../../model/status/gap-state.ts";
import { formatTimestamp, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { type BackfillFilter, type BackfillReport, backfill } from "../../sync/history/backfill.ts";
import type { NightlyResult } from "../../sync/history/verify.ts";
import { showProgress } from "../output/progress-bar.ts";
import { printReport, problemsPart, type ReportPart, tablePart, unselectedPart } from "../output/report.ts";
import { formatDuration, formatNumber, pluralize, wrapText } from "../output/text.ts";
import {
  type CommandContext,
  type CommonFlags,
  incompleteFailure,
  unfinishedFailure,
} from "../support/context.ts";
import { ADOPT_OPTION, addSettingsFlags, loadWithLog, logLevelOption } from "../support/flags.ts";
import {
  addSelectionFlags,
  readSelection,
  type SelectionFlags,
  toRunFilter,
} from "../support/selection-flags.ts";
import { withSyncSession } from "../support/session.ts";

function describeReport(report: BackfillReport): ReportPart[] {
  const { streams, problems, confirmations, night, notSelected, seconds, exit } = report;
  const finishedAt = formatTimestamp(report.finishedAt);
  const confirmation = describeConfirmations(confirmations, finishedAt, false);
  const total = streams.reduce((sum, { inserted }) => sum + inserted, 0);
  const toSeconds = (micros: Micros) => micros / MICROS_PER_SECOND;
  return [
    { json: { finished_at: finishedAt, seconds, exit } },
    tablePart("streams", streams, [
      { key: "stream", label: "stream", value: ({ stream }) => stream },
      { key: "rows", label: "new rows", value: ({ inserted }) => inserted },
      { key: "changed", value: ({ changed }) => changed },
      { key: "withdrawn", value: ({ withdrawn }) => withdrawn },
      { label: "changed", value: ({ changed, withdrawn }) => changed + withdrawn },
      { key: "requests", label: "requests", value: ({ requests }) => requests },
      { key: "open", label: "gaps left", value: ({ open }) => open },
      { key: "not_published_yet", value: ({ unpublished }) => unpublished },
      {
        key: "not_published_seconds",
        value: ({ unpublishedMicros }) => Math.round(toSeconds(unpublishedMicros)),
      },
      { key: "unconfirmed", value: ({ unconfirmed }) => unconfirmed },
      { key: "rejected", label: "rejects", value: ({ rejected }) => rejected },
    ]),
    problemsPart(problems),
    {
      lines: streams
        .filter(({ unpublished }) => unpublished > 0)
        .map(({ stream, unpublished, unpublishedMicros }) =>
          wrapText(
            `${pluralize(unpublished, "head")} not published yet by the service, at most ` +
              `${formatDuration(toSeconds(unpublishedMicros))}: a later run fetches the rest`,
            `${stream}  `,
          ),
        ),
    },
    { json: { confirmations }, lines: confirmation ? [wrapText(confirmation, "- ")] : [] },
    night ? describeNight(night) : { json: { compared: null } },
    unselectedPart(notSelected),
    { lines: [`${formatNumber(total)} new rows in ${seconds.toFixed(1)} s`] },
  ];
}

/** The nightly comparison: one line for ranges and one for ends of histories. */
function describeNight({ comparison, nights, ends }: NightlyResult): ReportPart {
  const { sliceCount, rows, differences } = comparison;
  const sum = (name: "missing" | "changed" | "withdrawn" | "unconfirmed") =>
    differences.reduce((total, difference) => total + difference[name], 0);
  const [missing, changed, withdrawn] = [sum("missing"), sum("changed"), sum("withdrawn")];
  const found = `${formatNumber(missing)} rows were missing, ${formatNumber(changed)} differed, ${formatNumber(withdrawn)} are no longer served`;
  const turn = nights === 1 ? "all of them" : `all of them in ${nights} nights`;
  const older =
    ends.reopened === 0
      ? "none has older records"
      : pluralize(ends.reopened, "has older records now", "have older records now");
  const failed = ends.unanswered === 0 ? "" : `, ${formatNumber(ends.unanswered)} not answered`;
  const asked = pluralize(ends.asked, "end of a history", "ends of histories");
  const lines = [
    `${pluralize(sliceCount, "settled range")} compared with the service (${turn}): ${found}`,
    ...(ends.asked > 0 ? [`${asked} requested again: ${older}${failed}`] : []),
  ];
  const counts = { ranges: sliceCount, nights, rows, missing, changed, withdrawn };
  const answers = { asked: ends.asked, reopened: ends.reopened, not_answered: ends.unanswered };
  return {
    json: { compared: { ...counts, unconfirmed: sum("unconfirmed"), ends: answers } },
    lines: lines.map((line) => wrapText(line, "- ")),
  };
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

interface BackfillFlags extends SelectionFlags, CommonFlags {
  readonly fetch?: boolean;
  readonly now?: boolean;
  readonly quiet?: boolean;
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
      const { loaded, log } = loadWithLog(command, context);
      const selection = toRunFilter(readSelection(flags, context.clock));
      if (flags.fetch && !selection.series)
        throw usageFailure("--fetch needs --series", "without it the settings decide what is fetched");
      const filter = { ...selection, fetchesUnselected: flags.fetch };
      const fillHere = () =>
        withSyncSession(loaded, { ...context, mayAdopt: flags.adopt }, log, (syncContext) => {
          const endProgress = flags.progress ? showProgress(syncContext, context.stderr) : undefined;
          return backfill(syncContext, filter).finally(endProgress);
        });
      const fillThere = () =>
        backfillThroughDaemon(
          controlFileOf(loaded.settings.warehouse.path),
          filter,
          context.stopping,
          (counts) => flags.progress && log.info(counts, "backfill in progress"),
        );
      const report = (flags.now ? await fillThere() : undefined) ?? (await fillHere().catch(suggestNow));
      const failure = findFailure(report);
      if (!flags.quiet || failure) context.stdout.write(printReport(describeReport(report), flags.json));
      if (failure) throw failure;
    });
}

/**
 * Asks the running daemon of the warehouse to fill the gaps now. Returns undefined if none runs. When the operator stops the
 * command, the daemon stops this work too.
 */
async function backfillThroughDaemon(
  controlFile: string,
  request: BackfillFilter,
  stopping: AbortSignal,
  onProgress: (counts: { readonly rows: number; readonly percent: number }) => void,
): Promise<BackfillReport | undefined> {
  const address = readControlAddress(controlFile);
  const response = address && (await send(address, request, stopping));
  // A killed daemon leaves its file, and another program may have its port.
  if (!response?.body || response.status !== 200) return void (await response?.body?.cancel());
  try {
    for await (const text of createInterface({ input: Readable.fromWeb(response.body) })) {
      const line = JSON.parse(text) as BackfillLine;
      if ("report" in line) return line.report;
      if ("failure" in line) throw deserialiseFailure(line.failure);
      onProgress(line.progress);
    }
  } catch (error) {
    if (error instanceof Failure) throw error;
  }
  throw unfinishedFailure(stopping.reason, "the daemon ended");
}

function readControlAddress(file: string): ControlAddress | undefined {
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, "utf8")) as ControlAddress;
  } catch (error) {
    const code = errorCode(error);
    if (code !== "EACCES") return undefined;
    throw new Failure(`cannot read ${file}, which has the address of the daemon (${code})`, {
      code: "not_readable",
      remedy: "run this command as the daemon's user",
    });
  }
}

/** Returns undefined if nothing listens there. */
async function send(
  { port, token }: ControlAddress,
  request: BackfillFilter,
  stopping: AbortSignal,
): Promise<Response | undefined> {
  try {
    return await fetch(`http://127.0.0.1:${port}${CONTROL_PATH}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(request),
      signal: stopping,
    });
  } catch (error) {
    if (error instanceof Error && errorCode(error.cause) === "ECONNREFUSED") return undefined;
    throw unfinishedFailure(stopping.reason, "the daemon ended");
  }
}
