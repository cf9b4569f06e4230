import { statSync } from "node:fs";
import type { Command } from "commander";
import type { LoadedSettings } from "../../config/load-settings.ts";
import { requireServiceSettings } from "../../config/service-settings.ts";
import { MICROS_PER_MS } from "../../model/time.ts";
import type { Log } from "../../runtime/log.ts";
import { createServiceClient, type ServiceClient } from "../../service/client/client.ts";
import { assumptions, type Plan, planBackfill } from "../../sync/history/estimate.ts";
import { askDirectory } from "../../sync/selection/fetch-directory.ts";
import { knownAssets } from "../../warehouse/lookups/lookup-queries.ts";
import { openReader } from "../../warehouse/reader.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { numbersTable, wrapped } from "../output/text.ts";
import type { CommandContext } from "../support/context.ts";
import { addSettingsFlags, logLevelFlag, logLevelHelp, readLogger, settingsFor } from "../support/flags.ts";
import { syncSettings } from "../support/session.ts";

export function addPlanCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("plan"))
    .summary("say what a backfill would fetch: series, holes, requests, rows, disk, minutes")
    .description(
      "Says, before anything is fetched, what a backfill would do with the settings as they are. Writes nothing. What the " +
        "warehouse does not know yet (assets, markets, the ranking) is looked up at the service.",
    )
    .option("--json", "one JSON object")
    .option(logLevelFlag, logLevelHelp, "warn")
    .action(async (flags: { json?: boolean; logLevel: string }, command: Command) => {
      const loaded = settingsFor(command, context);
      const log = readLogger(flags.logLevel, context.stderr);
      const settings = syncSettings(loaded);
      const { maxRequestsPerSecond } = loaded.settings.service;
      const plan = await withSources(loaded, context, log, async (reader, client) => {
        const now = () => Math.floor((client?.serverNow() ?? context.clock.now()) * MICROS_PER_MS);
        const directory = await askDirectory(settings, reader, client, now, context.stopping);
        return planBackfill({ settings, maxRequestsPerSecond, directory, reader, now: now() });
      });
      const basis = assumptions({ settings, maxRequestsPerSecond });
      context.stdout.write(flags.json ? planJson(plan, basis) : planText(plan, basis));
    });
}

/** The warehouse if there is one, and the service's client where the warehouse alone cannot tell. */
async function withSources<T>(
  loaded: LoadedSettings,
  { clock }: CommandContext,
  log: Log,
  work: (reader: Connection | undefined, client: ServiceClient | undefined) => Promise<T>,
): Promise<T> {
  const { path } = loaded.settings.warehouse;
  const reader = statSync(path, { throwIfNoEntry: false })?.size ? openReader(path) : undefined;
  // With the lookups in the warehouse a plan can be had offline, and without credentials.
  const isKnown = reader !== undefined && knownAssets(reader).length > 0;
  const client = isKnown
    ? undefined
    : createServiceClient({
        ...requireServiceSettings(loaded),
        clock,
        random: Math.random,
        log,
        observe: () => {},
      });
  try {
    return await work(reader, client);
  } finally {
    await client?.close();
    reader?.close();
  }
}

function planText({ streams, notices }: Plan, basis: string): string {
  const head = ["stream", "series", "holes", "requests", "rows", "disk", "minutes"];
  const count = (value: number) => value.toLocaleString("en-US");
  const rows = streams.map(({ stream, series, holes, requests, rows, bytes, minutes }) => [
    stream,
    ...[series, holes, requests, rows].map(count),
    size(bytes),
    minutes.toFixed(1),
  ]);
  const sum = (key: "requests" | "rows" | "bytes" | "minutes") =>
    streams.reduce((total, stream) => total + stream[key], 0);
  const total = [
    "total",
    "",
    "",
    count(sum("requests")),
    count(sum("rows")),
    size(sum("bytes")),
    sum("minutes").toFixed(1),
  ];
  const lines = [numbersTable([head, ...rows, total])];
  for (const { setting, kind, names } of notices) {
    const what = { unknown: "unknown", shared: "shared by several", unresolved: "no ranking is known" }[kind];
    lines.push(wrapped(`${setting}: ${what}${names.length > 0 ? `: ${names.join(", ")}` : ""}`, "- "));
  }
  return `${[...lines, wrapped(basis, "- ")].join("\n")}\n`;
}

function planJson({ streams, notices }: Plan, basis: string): string {
  return `${JSON.stringify({ streams, notices, assumptions: basis }, null, 2)}\n`;
}

function size(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let [value, unit] = [bytes, 0];
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000;
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
