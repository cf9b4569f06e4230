import { type Command, Option } from "commander";
import { integerOption } from "../../config/option-types.ts";
import { describeConfirmations } from "../../model/status/confirmations.ts";
import { formatTimestamp, formatToSecond, MICROS_PER_MS } from "../../model/time.ts";
import type { verify } from "../../sync/history/verify.ts";
import { auditLedger } from "../../warehouse/audit/audit-ledger.ts";
import type { AuditFinding } from "../../warehouse/audit/audited-key.ts";
import { isRepairable, repairLedger } from "../../warehouse/audit/repair-ledger.ts";
import { openReader, withReader } from "../../warehouse/reader.ts";
import { openWriter } from "../../warehouse/writer.ts";
import { formatAuditReport, toAuditJson } from "../output/audit-report.ts";
import { formatNumber, formatProblems, pluralize, wrapText } from "../output/text.ts";
import { type CommandContext, incompleteFailure, usageFailure } from "../support/context.ts";
import {
  ADOPT_OPTION,
  addSettingsFlags,
  createCommandLogger,
  loadSettingsAndWarn,
  logLevelOption,
} from "../support/flags.ts";

interface VerifyFlags {
  sample: string;
  all?: boolean;
  accept?: boolean;
  adopt?: boolean;
  ledger?: boolean;
  repair?: boolean;
  json?: boolean;
  logLevel: string;
}

/** The text report lists this many; --json lists all. */
const MAX_DIFFERENCES_SHOWN = 20;
const SAMPLE_OPTION = integerOption("how many ranges are compared", 20, 1, 1_000_000);

export function addVerifyCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("verify"), "service", "warehouse")
    .description(
      "Fetches settled ranges of daily bars and ticks again and compares them row by row. Differences are reported and " +
        "repaired; the replaced rows stay in `revisions`. A range is a few pages of one series.\n\n" +
        "With --ledger it checks the coverage ledger against itself, the rows and the views instead: without the service, " +
        "without changing anything, also beside a running daemon. Exits 4 if a rule is broken. With --repair it " +
        "takes back the false claims, so that the next run fetches these ranges; no other writer may run meanwhile.",
    )
    .addOption(
      new Option("--sample <n>", `${SAMPLE_OPTION.help}, chosen at random`)
        .default(String(SAMPLE_OPTION.defaultValue))
        .conflicts("all"),
    )
    .option("--all", "compare everything that the service still has")
    .option(
      "--accept",
      "believe at once that the service has withdrawn many rows, or has nothing older (otherwise after `sync.withdrawals`)",
    )
    .option(...ADOPT_OPTION)
    .addOption(
      new Option("--ledger", "check the ledger offline instead of comparing").conflicts(["sample", "all"]),
    )
    .option("--repair", "with --ledger: take back false claims, so that they are fetched again")
    .option("--json", "one JSON object")
    .option(...logLevelOption(), "warn")
    .action(async (flags: VerifyFlags, command: Command) => {
      const loaded = loadSettingsAndWarn(command, context);
      if (flags.ledger) return auditWarehouse(loaded.settings.warehouse.path, flags, context);
      if (flags.repair) throw usageFailure("--repair needs --ledger", "without it verify always repairs");
      const sample = flags.all ? undefined : readSample(flags.sample);
      const log = createCommandLogger(flags.logLevel, context.stderr);
      // Opening for writing would create a missing file or replace a damaged one. Opening a reader first fails instead.
      openReader(loaded.settings.warehouse.path).close();
      const { verify: verifyWarehouse } = await import("../../sync/history/verify.ts");
      const { toSyncSettings, withSyncSession } = await import("../support/session.ts");
      const { refreshSeconds, concurrency } = toSyncSettings(loaded);
      const sessionContext = { ...context, mayAdopt: flags.adopt ?? false };
      const verified = await withSyncSession(loaded, sessionContext, log, ({ syncContext, reader, random }) =>
        verifyWarehouse(syncContext, {
          reader,
          random,
          refreshSeconds,
          concurrency,
          sample,
          acceptsWithdrawals: flags.accept ?? false,
        }),
      );
      const now = formatTimestamp(context.clock.now() * MICROS_PER_MS);
      context.stdout.write(flags.json ? toVerifyJson(verified) : formatVerifyReport(verified, now));
      if (verified.problems.length > 0) throw incompleteFailure("not everything could be compared");
      if (verified.sliceCount === 0)
        throw incompleteFailure(
          "nothing could be compared: nothing is settled yet",
          "run `mds-sync backfill` first",
        );
    });
}

/** Reads only, unless false claims are to be taken back. */
function auditWarehouse(path: string, { repair, json }: VerifyFlags, context: CommandContext): void {
  const result = withReader(path, (connection) => auditLedger(connection));
  const { findings } = result;
  const reopened = repair ? repairFindings(path, findings, context) : undefined;
  context.stdout.write(json ? toAuditJson(result, reopened) : formatAuditReport(result, reopened));
  if (findings.length === (reopened ?? 0)) return;
  throw incompleteFailure(
    "the ledger breaks its own rules",
    !repair && findings.some(isRepairable)
      ? "`mds-sync verify --ledger --repair` takes the false claims back: the next run fetches these ranges"
      : "restart mds-sync, which declares views and targets again; if it stays, report it",
  );
}

/** The findings are not checked again before they are taken back: at worst a range is fetched twice. */
function repairFindings(path: string, findings: readonly AuditFinding[], { clock }: CommandContext): number {
  if (!findings.some(isRepairable)) return 0;
  const warehouse = openWriter(path, { clock });
  try {
    return warehouse.transaction((transaction) => repairLedger(transaction, findings));
  } finally {
    warehouse.close();
  }
}

function readSample(text: string): number {
  const result = SAMPLE_OPTION.parse(text);
  if ("value" in result) return result.value;
  throw usageFailure(`--sample cannot be ${text}`, `give ${result.expected}`);
}

type VerifyReport = Awaited<ReturnType<typeof verify>>;

function formatVerifyReport(verified: VerifyReport, now: string): string {
  const { sliceCount, rows, extraChanged, unserved, differences, problems } = verified;
  const lines = [`${formatNumber(sliceCount)} ranges compared, ${formatNumber(rows)} rows`];
  for (const difference of differences.slice(0, MAX_DIFFERENCES_SHOWN)) {
    const { stream, name, indexType, from, to, missing, changed, withdrawn, unconfirmed } = difference;
    const range = `${formatToSecond(from)} to ${formatToSecond(to)}`;
    const what = `${missing} were missing, ${changed} differed, ${withdrawn} are no longer served`;
    const standing = unconfirmed > 0 ? `, ${unconfirmed} more are unconfirmed and stay` : "";
    lines.push(wrapText(`${stream} (${indexType} ${name}), ${range}: ${what}${standing}`, "- "));
  }
  const more = differences.length - MAX_DIFFERENCES_SHOWN;
  if (more > 0) lines.push(`  and ${formatNumber(more)} more: --json lists all of them`);
  const confirmation = describeConfirmations(verified.confirmations, now, false);
  if (differences.length === 0 && sliceCount > 0 && !confirmation) lines.push("no difference");
  if (confirmation) {
    const found = differences.length === 0 ? "no difference in what is proven; " : "";
    lines.push(wrapText(`${found}${confirmation}`));
  }
  const repaired = differences.filter(
    ({ missing, changed, withdrawn, hasReopened }) => missing + changed + withdrawn > 0 || hasReopened,
  );
  if (repaired.length > 0) {
    const hasReplaced = repaired.some(({ changed, withdrawn }) => changed + withdrawn > 0);
    const hint = hasReplaced ? "; the replaced rows are in the view revisions" : "";
    lines.push(
      wrapText(
        `${pluralize(repaired.length, "range differed and was repaired", "ranges differed and were repaired")}${hint}`,
      ),
    );
  }
  if (extraChanged > 0) {
    const what = pluralize(extraChanged, "row has", "rows have");
    const where = "stored in `extra`, the view unknown_fields lists them";
    lines.push(wrapText(`${what} other undocumented properties now: ${where}`));
  }
  for (const { stream, indexType, name, before, rows: kept } of unserved) {
    const what = `${pluralize(kept, "row is", "rows are")} older than what the service still serves`;
    const since = formatToSecond(before);
    lines.push(wrapText(`${stream} (${indexType} ${name}): ${what} (since ${since}), and stay`, "- "));
  }
  return `${[...lines, ...formatProblems(problems)].join("\n")}\n`;
}

function toVerifyJson({ sliceCount, rows, unserved, differences, ...verified }: VerifyReport): string {
  const shown = differences.map(({ stream, indexType, name, from, to, ...counts }) => ({
    stream,
    index_type: indexType,
    name,
    from_time: formatTimestamp(from),
    to_time: formatTimestamp(to),
    missing: counts.missing,
    changed: counts.changed,
    withdrawn: counts.withdrawn,
    unconfirmed: counts.unconfirmed,
  }));
  const kept = unserved.map(({ stream, indexType, name, before, rows: count }) => ({
    stream,
    index_type: indexType,
    name,
    served_from: formatTimestamp(before),
    rows: count,
  }));
  const { extraChanged, problems, confirmations } = verified;
  const counts = { stretches: sliceCount, rows, extra_changed: extraChanged, confirmations };
  return `${JSON.stringify({ ...counts, differences: shown, unserved: kept, problems }, null, 2)}\n`;
}
