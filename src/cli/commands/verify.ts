import { type Command, Option } from "commander";
import { wholeNumber } from "../../config/option-types.ts";
import { exitCode, Failure } from "../../model/failure.ts";
import { formatInstant } from "../../model/time.ts";
import { type Verified, verify } from "../../sync/history/verify.ts";
import { openReader } from "../../warehouse/reader.ts";
import { wrapped } from "../output/text.ts";
import type { CommandContext } from "../support/context.ts";
import { usageFailure } from "../support/context.ts";
import { addSettingsFlags, logLevelFlag, logLevelHelp, readLogger, settingsFor } from "../support/flags.ts";
import { syncSettings, withSyncSession } from "../support/session.ts";

interface Flags {
  sample: string;
  all?: boolean;
  json?: boolean;
  logLevel: string;
}

/** On a terminal; --json gives all of them. */
const MOST_SHOWN = 20;
const sampleSize = wholeNumber({ help: "how many stretches are compared" }, 20, 1, 1_000_000);

export function addVerifyCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("verify"))
    .summary("compare the warehouse with the service again; differences are reported and refetched")
    .description(
      "Walks over settled stretches of daily bars and ticks once more and compares them row by row. What differs is " +
        "reported and put right at once; what stood there before is in `revisions`. A stretch is a few pages of one series.",
    )
    .addOption(
      new Option("--sample <n>", `${sampleSize.help}, drawn by chance`)
        .default(String(sampleSize.fallback))
        .conflicts("all"),
    )
    .option("--all", "compare everything that the service still has")
    .option("--json", "one JSON object")
    .option(logLevelFlag, logLevelHelp, "warn")
    .action(async (flags: Flags, command: Command) => {
      const loaded = settingsFor(command, context);
      const sample = flags.all ? undefined : readSample(flags.sample);
      const log = readLogger(flags.logLevel, context.stderr);
      // Who would write repairs a damaged file and makes a missing one: nothing there would be compared.
      openReader(loaded.settings.warehouse.path).close();
      const { refreshSeconds, concurrency } = syncSettings(loaded);
      const verified = await withSyncSession(loaded, context, log, ({ intake, reader, random }) =>
        verify(intake, { reader, random, refreshSeconds, concurrency, sample }),
      );
      context.stdout.write(flags.json ? verifiedJson(verified) : verifiedText(verified));
      if (verified.problems.length > 0)
        throw incomplete("not everything could be compared", "the report names what is left");
      if (verified.stretches === 0)
        throw incomplete(
          "nothing could be compared: nothing is settled yet",
          "run `mds-sync backfill` first",
        );
    });
}

function incomplete(message: string, remedy: string): Failure {
  return new Failure(message, {
    family: "operator",
    code: "incomplete",
    remedy,
    exit: exitCode.incomplete,
  });
}

function readSample(text: string): number {
  const reading = sampleSize.read(text);
  if ("value" in reading) return reading.value;
  throw usageFailure(`--sample cannot be ${text}`, `give ${reading.wanted}`);
}

function verifiedText({ stretches, rows, differences, problems }: Verified): string {
  const count = (value: number) => value.toLocaleString("en-US");
  const lines = [`${count(stretches)} stretches compared, ${count(rows)} rows`];
  for (const difference of differences.slice(0, MOST_SHOWN)) {
    const { stream, name, indexType, from, to, missing, changed, withdrawn } = difference;
    const range = `${formatInstant(from).slice(0, 19)}Z to ${formatInstant(to).slice(0, 19)}Z`;
    const what = `${missing} were missing, ${changed} differed, ${withdrawn} are no longer served`;
    lines.push(wrapped(`${stream} (${indexType} ${name}), ${range}: ${what}`, "- "));
  }
  const more = differences.length - MOST_SHOWN;
  if (more > 0) lines.push(`  and ${count(more)} more: --json names them all`);
  if (differences.length === 0 && stretches > 0) lines.push("no difference");
  if (differences.length > 0) {
    const hasReplaced = differences.some(({ changed, withdrawn }) => changed + withdrawn > 0);
    const before = hasReplaced ? "; what stood there before is in the view revisions" : "";
    lines.push(wrapped(`${count(differences.length)} of them differed and were put right${before}`));
  }
  for (const { stream, what, message } of problems) {
    lines.push(wrapped(`${stream}${what === undefined ? "" : ` (${what})`}: ${message}`, "- "));
  }
  return `${lines.join("\n")}\n`;
}

function verifiedJson({ stretches, rows, differences, problems }: Verified): string {
  const shown = differences.map(({ stream, indexType, name, from, to, missing, changed, withdrawn }) => ({
    stream,
    index_type: indexType,
    name,
    from_time: formatInstant(from),
    to_time: formatInstant(to),
    missing,
    changed,
    withdrawn,
  }));
  return `${JSON.stringify({ stretches, rows, differences: shown, problems }, null, 2)}\n`;
}
