import type { Command } from "commander";
import type { LoadedSettings } from "../../../config/load-settings.ts";
import { requireServiceSettings, type ServiceSettings } from "../../../config/service-settings.ts";
import { type ExitCode, exitCode, Failure } from "../../../model/failure.ts";
import { formatInstant, MICROS_PER_MS } from "../../../model/time.ts";
import { counted, wrapped } from "../../output/text.ts";
import type { CommandContext } from "../../support/context.ts";
import { addSettingsFlags, readSettings } from "../../support/flags.ts";
import { type Finding, ok, problem, warning, worstExit } from "./finding.ts";

export function addDoctorCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("doctor"))
    .summary("check settings, credentials, scopes, reachability, clock, warehouse and disk")
    .description(
      "Checks everything that a sync needs, each with what to do about it: settings, secret, credentials, scopes, REST and " +
        "websocket, clock, warehouse file and disk space. Changes nothing, and takes some fifteen seconds at most. " +
        "Exits 0 when nothing is wrong; else 2 settings, 3 credentials, 75 unreachable or disk full, 4 scopes missing: " +
        "the first of these that applies. Warnings do not count.",
    )
    .option("--json", "one JSON object: generated_at, checks")
    .action(async (options: { json?: boolean }, command: Command) => {
      const findings = await examine(command, context);
      const generatedAt = formatInstant(Math.round(context.clock.now() * MICROS_PER_MS));
      const checks = findings.map(({ check, verdict, message, remedy = null }) => ({
        check,
        verdict,
        message,
        remedy,
      }));
      const text = options.json
        ? JSON.stringify({ generated_at: generatedAt, checks }, null, 2)
        : findings.map(lineOf).join("\n");
      context.stdout.write(`${text}\n`);
      const exit = worstExit(findings);
      if (exit !== exitCode.ok) throw unwell(findings, exit);
    });
}

async function examine(command: Command, context: CommandContext): Promise<Finding[]> {
  let loaded: LoadedSettings;
  try {
    loaded = readSettings(command, context);
  } catch (error) {
    return [problem("settings", error)];
  }
  const { settings, file } = loaded;
  const [service, ofSettings] = serviceOf(loaded);
  // Loaded when it runs: no other command waits for the client and SQLite.
  const { checkService } = await import("./service-checks.ts");
  const { checkWarehouse } = await import("./warehouse-checks.ts");
  const [ofService, ofWarehouse] = await Promise.all([
    service ? checkService(service, settings.sync, context) : [],
    checkWarehouse(settings.warehouse.path, context.clock),
  ]);
  return [
    ok("settings", file ? `read from ${file}` : "no settings file: built-in defaults and the environment"),
    ...loaded.warnings.map((text) => warning("settings", ...splitRemedy(text))),
    ...ofSettings,
    ...ofService,
    ...ofWarehouse,
  ];
}

/** What is needed to ask the service anything at all, the secret being read once to see whether it can be. */
function serviceOf(loaded: LoadedSettings): [ServiceSettings | undefined, Finding[]] {
  try {
    const service = requireServiceSettings(loaded);
    loaded.secret.read();
    return [service, [ok("secret", `from the ${loaded.secret.origin}`)]];
  } catch (error) {
    return [undefined, [problem("service", error)]];
  }
}

/** Warnings of the settings are one line, the remedy after the last colon. */
function splitRemedy(text: string): [string, string] {
  const at = text.lastIndexOf(": ");
  return [text.slice(0, at), text.slice(at + 2)];
}

function lineOf({ check, verdict, message, remedy }: Finding): string {
  const lead = `${verdict.padEnd(7)}  ${check.padEnd(12)}  `;
  const lines = [wrapped(message, lead)];
  if (remedy !== undefined) lines.push(wrapped(remedy, `${" ".repeat(lead.length - 2)}→ `));
  return lines.join("\n");
}

function unwell(findings: readonly Finding[], exit: ExitCode): Failure {
  const problems = findings.filter(({ verdict }) => verdict === "problem").length;
  return new Failure(`${counted(problems, "problem")} found`, {
    family: "operator",
    code: "unwell",
    remedy: "what to do stands beside each",
    exit,
  });
}
