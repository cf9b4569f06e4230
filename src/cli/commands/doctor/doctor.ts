import type { Command } from "commander";
import {
  type LoadedSettings,
  requireServiceSettings,
  type ServiceSettings,
} from "../../../config/load-settings.ts";
import { exitCode, Failure } from "../../../model/failure.ts";
import { formatTimestamp, MICROS_PER_MS } from "../../../model/time.ts";
import { withTimeout } from "../../../runtime/timeouts.ts";
import type { ServiceClient } from "../../../service/client/client.ts";
import { pluralize, wrapText } from "../../output/text.ts";
import type { CommandContext, CommonFlags } from "../../support/context.ts";
import { addSettingsFlags, loadSettingsFromFlags } from "../../support/flags.ts";
import { toSyncSettings } from "../../support/session.ts";
import { Check, type Finding, type Probe, worstExit } from "./finding.ts";
import { checkSelection } from "./selection-checks.ts";
import { checkService } from "./service-checks.ts";
import { checkSharedWarehouse } from "./shared-checks.ts";
import { checkWarehouse } from "./warehouse-checks.ts";

const CHECK_TIMEOUT_MS = 5_000;

export function addDoctorCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("doctor"))
    .description(
      "Checks what a sync needs: settings, secret, credentials, scopes, REST and websocket, clock, the names that the settings " +
        "select, whether the warehouse belongs to this service, its file and disk space. Prints a remedy for each problem. Changes nothing, and takes at most about fifteen seconds. " +
        "Exits 0 if there is no problem, else with the first of these that applies: 2 settings, 3 credentials, 75 unreachable " +
        "or disk full, 4 scopes missing or names unknown. Warnings do not change the exit code.",
    )
    .option("--json", "one JSON object: generated_at, checks")
    .action(async (flags: CommonFlags, command: Command) => {
      const findings = await runChecks(command, context);
      const generatedAt = formatTimestamp(Math.round(context.clock.now() * MICROS_PER_MS));
      const checks = findings.map(({ check, verdict, message, remedy = null }) => ({
        check,
        verdict,
        message,
        remedy,
      }));
      const text = flags.json
        ? JSON.stringify({ generated_at: generatedAt, checks }, null, 2)
        : findings.map(formatFinding).join("\n");
      context.stdout.write(`${text}\n`);
      const exit = worstExit(findings);
      if (exit === exitCode.ok) return;
      const problems = findings.filter(({ verdict }) => verdict === "problem").length;
      throw new Failure(`${pluralize(problems, "problem")} found`, {
        code: "unwell",
        remedy: "the report has a remedy for each",
        exit,
      });
    });
}

async function runChecks(command: Command, context: CommandContext): Promise<Finding[]> {
  const check = new Check("settings");
  let loaded: LoadedSettings;
  try {
    loaded = loadSettingsFromFlags(command, context);
  } catch (error) {
    return [check.failure(error)];
  }
  const { settings, file } = loaded;
  const [service, settingsFindings] = checkServiceSettings(loaded);
  const { clock, stopping } = context;
  const warehousePath = settings.warehouse.path;
  const base: Probe = {
    clock,
    runWithTimeout: (work) => withTimeout({ clock, ms: CHECK_TIMEOUT_MS, stopping }, work),
  };
  const checkWithClient = (client: ServiceClient | undefined) =>
    checkSelection({ ...base, settings: toSyncSettings(loaded), warehousePath, client });
  const [serviceFindings, warehouseFindings, sharedFindings] = await Promise.all([
    service ? checkService(service, settings.sync, base, checkWithClient) : checkWithClient(undefined),
    checkWarehouse(warehousePath, clock),
    checkSharedWarehouse(loaded, clock),
  ]);
  return [
    check.ok(file ? `read from ${file}` : "no settings file: built-in defaults and the environment"),
    ...loaded.warnings.map(({ message, remedy }) => check.warning(message, remedy)),
    ...settingsFindings,
    ...serviceFindings,
    ...warehouseFindings,
    ...sharedFindings,
  ];
}

/** Returns the settings for the service, and checks that the secret can be read. */
function checkServiceSettings(loaded: LoadedSettings): [ServiceSettings | undefined, Finding[]] {
  try {
    const service = requireServiceSettings(loaded);
    loaded.secret.read();
    return [service, [new Check("secret").ok(`from the ${loaded.secret.origin}`)]];
  } catch (error) {
    return [undefined, [new Check("service").failure(error)]];
  }
}

function formatFinding({ check, verdict, message, remedy }: Finding): string {
  const lead = `${verdict.padEnd(7)}  ${check.padEnd(12)}  `;
  const lines = [wrapText(message, lead)];
  if (remedy !== undefined) lines.push(wrapText(remedy, `${" ".repeat(lead.length - 2)}→ `));
  return lines.join("\n");
}
