import { type Command, Option } from "commander";
import { integer, option } from "../../config/option-types.ts";
import { usageFailure } from "../../model/failure.ts";
import { type Confirmations, describeConfirmations } from "../../model/status/gap-state.ts";
import { formatTimestamp, formatToSecond, MICROS_PER_MS } from "../../model/time.ts";
import { type VerifyResult, verify } from "../../sync/history/verify.ts";
import {
  type AuditResult,
  auditLedger,
  isRepairable,
  repairLedger,
} from "../../warehouse/audit/audit-ledger.ts";
import type { AuditFinding } from "../../warehouse/audit/audited-key.ts";
import { openReader, withReader } from "../../warehouse/reader.ts";
import { openWriter } from "../../warehouse/writer.ts";
import { listPart, printReport, problemsPart, type ReportPart } from "../output/report.ts";
import { formatNumber, pluralize, wrapText } from "../output/text.ts";
import { type CommandContext, type CommonFlags, incompleteFailure } from "../support/context.ts";
import { ADOPT_OPTION, addSettingsFlags, loadWithLog, logLevelOption, readFlag } from "../support/flags.ts";
import { withSyncSession } from "../support/session.ts";

interface VerifyFlags extends CommonFlags {
  readonly sample: string;
  readonly all?: boolean;
  readonly accept?: boolean;
  readonly ledger?: boolean;
  readonly repair?: boolean;
}

const SAMPLE_OPTION = option(integer(1, 1_000_000), "how many ranges are compared", 20);

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
      const { loaded, log } = loadWithLog(command, context);
      if (flags.ledger) return auditWarehouse(loaded.settings.warehouse.path, flags, context);
      if (flags.repair) throw usageFailure("--repair needs --ledger", "without it verify always repairs");
      const sample = flags.all ? undefined : readFlag("--sample", flags.sample, SAMPLE_OPTION);
      // Opening for writing would create a missing file or replace a damaged one. Opening a reader first fails instead.
      openReader(loaded.settings.warehouse.path).close();
      const verified = await withSyncSession(
        loaded,
        { ...context, mayAdopt: flags.adopt },
        log,
        (syncContext) => verify(syncContext, { sample, acceptsWithdrawals: flags.accept }),
      );
      const now = formatTimestamp(context.clock.now() * MICROS_PER_MS);
      context.stdout.write(printReport(describeVerified(verified, now), flags.json));
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
  context.stdout.write(printReport(describeAudit(result, reopened), json));
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

function describeVerified(
  verified: VerifyResult & { readonly confirmations: Confirmations },
  now: string,
): ReportPart[] {
  const { sliceCount, rows, extraChanged, unserved, differences, problems, confirmations } = verified;
  const extra = `${pluralize(extraChanged, "row has", "rows have")} other undocumented properties now`;
  const place = "stored in `extra`, the view unknown_fields lists them";
  return [
    {
      json: { stretches: sliceCount, rows },
      lines: [`${formatNumber(sliceCount)} ranges compared, ${formatNumber(rows)} rows`],
    },
    listPart("differences", differences, {
      toJson: ({ stream, indexType, name, from, to, missing, changed, withdrawn, unconfirmed }) => ({
        stream,
        index_type: indexType,
        name,
        from_time: formatTimestamp(from),
        to_time: formatTimestamp(to),
        missing,
        changed,
        withdrawn,
        unconfirmed,
      }),
      toText: ({ stream, name, indexType, from, to, missing, changed, withdrawn, unconfirmed }) => {
        const range = `${formatToSecond(from)} to ${formatToSecond(to)}`;
        const what = `${missing} were missing, ${changed} differed, ${withdrawn} are no longer served`;
        const standing = unconfirmed > 0 ? `, ${unconfirmed} more are unconfirmed and stay` : "";
        return `${stream} (${indexType} ${name}), ${range}: ${what}${standing}`;
      },
    }),
    {
      json: { confirmations },
      lines: describeOutcome(verified, describeConfirmations(confirmations, now, false)),
    },
    {
      json: { extra_changed: extraChanged },
      lines: extraChanged > 0 ? [wrapText(`${extra}: ${place}`)] : [],
    },
    listPart("unserved", unserved, {
      toJson: ({ stream, indexType, name, before, rows: kept }) => ({
        stream,
        index_type: indexType,
        name,
        served_from: formatTimestamp(before),
        rows: kept,
      }),
      toText: ({ stream, indexType, name, before, rows: kept }) =>
        `${stream} (${indexType} ${name}): ${pluralize(kept, "row is", "rows are")} older than what the service still serves ` +
        `(since ${formatToSecond(before)}), and stay`,
    }),
    problemsPart(problems),
  ];
}

function describeOutcome(
  { sliceCount, differences }: Pick<VerifyResult, "sliceCount" | "differences">,
  confirmation: string | undefined,
): string[] {
  const isEqual = differences.length === 0;
  const repaired = differences.filter(
    ({ missing, changed, withdrawn, hasReopened }) => missing + changed + withdrawn > 0 || hasReopened,
  );
  const hasReplaced = repaired.some(({ changed, withdrawn }) => changed + withdrawn > 0);
  const hint = hasReplaced ? "; the replaced rows are in the view revisions" : "";
  const count = pluralize(
    repaired.length,
    "range differed and was repaired",
    "ranges differed and were repaired",
  );
  return [
    ...(isEqual && sliceCount > 0 && !confirmation ? ["no difference"] : []),
    ...(confirmation
      ? [wrapText(`${isEqual ? "no difference in what is proven; " : ""}${confirmation}`)]
      : []),
    ...(repaired.length > 0 ? [wrapText(`${count}${hint}`)] : []),
  ];
}

/** `reopened`: how many findings were repaired; undefined: the audit only read. */
function describeAudit(
  { keyCount, rangeCount, findings, remarks }: AuditResult,
  reopened: number | undefined,
): ReportPart[] {
  const listed = (key: string, all: readonly AuditFinding[]) =>
    listPart(key, all, {
      toJson: ({ rule, key: { stream }, names, from, to, text }) => ({
        rule,
        stream,
        index_type: names?.indexType || null,
        index_id: names?.indexId || null,
        name: names?.name || null,
        from_time: formatTimestamp(from),
        to_time: formatTimestamp(to),
        text,
      }),
      toText: ({ rule, key: { stream }, names, from, to, text }) =>
        `${[stream, names?.indexType, names?.name || names?.indexId].filter(Boolean).join(" ")}, ` +
        `${formatToSecond(from)} to ${formatToSecond(to)}: ${text} (${rule})`,
    });
  return [
    {
      json: { series: keyCount, ranges: rangeCount },
      lines: [
        `${pluralize(rangeCount, "settled range")} of ${pluralize(keyCount, "series", "series")} checked`,
      ],
    },
    listed("findings", findings),
    {
      lines: [
        findings.length === 0
          ? "the ledger agrees with itself, with the rows and with the views"
          : pluralize(findings.length, "rule is broken", "rules are broken"),
        ...(reopened
          ? [`${pluralize(reopened, "claim")} taken back: the next run fetches these ranges`]
          : []),
        ...(remarks.length > 0 ? [`${pluralize(remarks.length, "remark")}, which may be right:`] : []),
      ],
    },
    listed("remarks", remarks),
    { json: reopened === undefined ? {} : { reopened } },
  ];
}
