import { statSync } from "node:fs";
import type { Command } from "commander";
import type { LoadedSettings } from "../../config/load-settings.ts";
import { requireServiceSettings } from "../../config/service-settings.ts";
import { MICROS_PER_MS } from "../../model/time.ts";
import type { Log } from "../../runtime/log.ts";
import { createServiceClient, type ServiceClient } from "../../service/client/client.ts";
import { type BackfillEstimate, describeAssumptions, estimateBackfill } from "../../sync/history/estimate.ts";
import { fetchDirectory } from "../../sync/selection/fetch-directory.ts";
import { readListedAssets } from "../../warehouse/lookups/lookup-queries.ts";
import { openReader } from "../../warehouse/reader.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { formatBytes, formatNumber, formatNumberTable, wrapText } from "../output/text.ts";
import type { CommandContext } from "../support/context.ts";
import {
  addSettingsFlags,
  createCommandLogger,
  LOG_LEVEL_FLAG,
  LOG_LEVEL_HELP,
  loadSettingsAndWarn,
} from "../support/flags.ts";
import { toSyncSettings } from "../support/session.ts";

export function addPlanCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("plan"))
    .summary("estimate a backfill: series, gaps, requests, rows, disk, minutes")
    .description(
      "Estimates what a backfill would fetch with the current settings. Writes nothing. If the warehouse has no lookups yet " +
        "(assets, markets, the ranking), it requests them from the service.",
    )
    .option("--json", "one JSON object")
    .option(LOG_LEVEL_FLAG, LOG_LEVEL_HELP, "warn")
    .action(async (flags: { json?: boolean; logLevel: string }, command: Command) => {
      const loaded = loadSettingsAndWarn(command, context);
      const log = createCommandLogger(flags.logLevel, context.stderr);
      const settings = toSyncSettings(loaded);
      const { maxRequestsPerSecond } = loaded.settings.service;
      const plan = await withSources(loaded, context, log, async (reader, client) => {
        const now = () => Math.floor((client?.serverNow() ?? context.clock.now()) * MICROS_PER_MS);
        const directory = await fetchDirectory(settings, reader, client, now, context.stopping);
        return estimateBackfill({ settings, maxRequestsPerSecond, directory, reader, now: now() });
      });
      const basis = describeAssumptions({ settings, maxRequestsPerSecond });
      context.stdout.write(flags.json ? toPlanJson(plan, basis) : formatPlan(plan, basis));
    });
}

/** Opens the warehouse if it exists, and a service client if the warehouse has no lookups. */
async function withSources<T>(
  loaded: LoadedSettings,
  { clock }: CommandContext,
  log: Log,
  work: (reader: Connection | undefined, client: ServiceClient | undefined) => Promise<T>,
): Promise<T> {
  const { path } = loaded.settings.warehouse;
  const reader = statSync(path, { throwIfNoEntry: false })?.size ? openReader(path) : undefined;
  // With lookups in the warehouse, a plan needs neither network nor credentials.
  const hasLookups = reader !== undefined && readListedAssets(reader).length > 0;
  const client = hasLookups
    ? undefined
    : createServiceClient({
        ...requireServiceSettings(loaded),
        clock,
        random: Math.random,
        log,
        onEvent: () => {},
      });
  try {
    return await work(reader, client);
  } finally {
    await client?.close();
    reader?.close();
  }
}

function formatPlan({ streams, notices }: BackfillEstimate, basis: string): string {
  const head = ["stream", "series", "gaps", "requests", "rows", "disk", "minutes"];
  const rows = streams.map(({ stream, series, holes, requests, rows, bytes, minutes }) => [
    stream,
    ...[series, holes, requests, rows].map(formatNumber),
    formatBytes(bytes),
    minutes.toFixed(1),
  ]);
  const sum = (key: "requests" | "rows" | "bytes" | "minutes") =>
    streams.reduce((total, stream) => total + stream[key], 0);
  const total = [
    "total",
    "",
    "",
    formatNumber(sum("requests")),
    formatNumber(sum("rows")),
    formatBytes(sum("bytes")),
    sum("minutes").toFixed(1),
  ];
  const lines = [formatNumberTable([head, ...rows, total])];
  for (const { setting, kind, names } of notices) {
    const what = { unknown: "unknown", shared: "shared by several", unresolved: "no ranking is known" }[kind];
    lines.push(wrapText(`${setting}: ${what}${names.length > 0 ? `: ${names.join(", ")}` : ""}`, "- "));
  }
  return `${[...lines, wrapText(basis, "- ")].join("\n")}\n`;
}

function toPlanJson({ streams, notices }: BackfillEstimate, basis: string): string {
  return `${JSON.stringify({ streams, notices, assumptions: basis }, null, 2)}\n`;
}
