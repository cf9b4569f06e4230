import { statSync } from "node:fs";
import type { Command } from "commander";
import { type LoadedSettings, requireServiceSettings } from "../../config/load-settings.ts";
import { Failure } from "../../model/failure.ts";
import { MICROS_PER_MS } from "../../model/time.ts";
import type { Log } from "../../runtime/log.ts";
import { createServiceClient, type ServiceClient } from "../../service/client/client.ts";
import { type BackfillEstimate, describeAssumptions, estimateBackfill } from "../../sync/history/estimate.ts";
import { type SampledSeries, sampleHistories } from "../../sync/history/sample-histories.ts";
import { fetchDirectory } from "../../sync/selection/fetch-directory.ts";
import { describeNotice } from "../../sync/selection/selectors.ts";
import { readListedAssets } from "../../warehouse/lookups/lookup-queries.ts";
import { openReader } from "../../warehouse/reader.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { listPart, printReport, type ReportPart, tablePart, unselectedPart } from "../output/report.ts";
import { formatBytes, wrapText } from "../output/text.ts";
import type { CommandContext, CommonFlags } from "../support/context.ts";
import { addSettingsFlags, loadWithLog, logLevelOption } from "../support/flags.ts";
import {
  addSelectionFlags,
  readSelection,
  type SelectionFlags,
  toRunFilter,
} from "../support/selection-flags.ts";
import { toSyncSettings } from "../support/session.ts";

type PlanFlags = SelectionFlags & CommonFlags & { readonly offline?: boolean };

export function addPlanCommand(program: Command, context: CommandContext): void {
  addSelectionFlags(addSettingsFlags(program.command("plan"), "service", "warehouse"))
    .description(
      "Estimates what a backfill would fetch with the current settings. Writes nothing. If the warehouse has no lookups yet " +
        "(assets, markets, the ranking), it requests them from the service. It asks the service with a few small requests " +
        "how far back a sample of the series reaches. The options limit it as those of backfill do.",
    )
    .option("--offline", "ask the service only for lookups that are missing; the figures are upper bounds")
    .option("--json", "one JSON object")
    .option(...logLevelOption(), "warn")
    .action(async (flags: PlanFlags, command: Command) => {
      const { loaded, log } = loadWithLog(command, context);
      const filter = toRunFilter(readSelection(flags, context.clock));
      const settings = toSyncSettings(loaded);
      const { plan, basis } = await withSources(loaded, context, log, async (sources) => {
        const { reader, client, hasLookups } = sources;
        const now = () => Math.floor((client?.server.now() ?? context.clock.now()) * MICROS_PER_MS);
        const lookupClient = hasLookups ? undefined : client;
        const directory = await fetchDirectory(settings, reader, lookupClient, now, context.stopping);
        const base = { settings, directory, reader, now: now(), filter };
        const timeout = new AbortController();
        const cancel = context.clock.after(SAMPLE_TIMEOUT_MS, () => timeout.abort());
        const signal = AbortSignal.any([context.stopping, timeout.signal]);
        let isSampled = false;
        const sample = async (series: readonly SampledSeries[]) => {
          if (flags.offline || !client) return new Map();
          const { concurrency } = settings;
          const extents = await sampleHistories({ client, series, concurrency, signal });
          isSampled ||= extents.size > 0;
          return extents;
        };
        const plan = await estimateBackfill({ ...base, sample }).finally(cancel);
        return { plan, basis: describeAssumptions(base, isSampled) };
      });
      context.stdout.write(printReport(describePlan(plan, basis), flags.json));
    });
}

/** A service that does not answer must not delay the plan for longer. */
const SAMPLE_TIMEOUT_MS = 30_000;

interface PlanSources {
  readonly reader: Connection | undefined;
  /** Undefined if the service is not configured. */
  readonly client: ServiceClient | undefined;
  readonly hasLookups: boolean;
}

/** Opens the warehouse if it exists, and a service client if the service is configured. */
async function withSources<T>(
  loaded: LoadedSettings,
  { clock }: CommandContext,
  log: Log,
  work: (sources: PlanSources) => Promise<T>,
): Promise<T> {
  const { path } = loaded.settings.warehouse;
  const reader = statSync(path, { throwIfNoEntry: false })?.size ? openReader(path) : undefined;
  const hasLookups = reader !== undefined && readListedAssets(reader).length > 0;
  const service = findServiceSettings(loaded, hasLookups);
  const client =
    service && createServiceClient({ ...service, clock, random: Math.random, log, onEvent: () => {} });
  try {
    return await work({ reader, client, hasLookups });
  } finally {
    await client?.close();
    reader?.close();
  }
}

/** With lookups in the warehouse, a plan needs neither network nor credentials. */
function findServiceSettings(loaded: LoadedSettings, isOptional: boolean) {
  try {
    return requireServiceSettings(loaded);
  } catch (error) {
    if (isOptional && error instanceof Failure) return undefined;
    throw error;
  }
}

function describePlan({ streams, notices, notSelected }: BackfillEstimate, basis: string): ReportPart[] {
  return [
    tablePart(
      "streams",
      streams,
      [
        { key: "stream", label: "stream", value: ({ stream }) => stream },
        { key: "series", label: "series", value: ({ series }) => series },
        { key: "holes", label: "gaps", value: ({ holes }) => holes },
        { key: "requests", label: "requests", value: ({ requests }) => requests },
        { key: "rows", label: "rows", value: ({ rows }) => rows },
        { key: "bytes", label: "disk", value: ({ bytes }) => bytes, format: formatBytes },
        {
          key: "minutes",
          label: "minutes",
          value: ({ minutes }) => minutes,
          format: (all) => all.toFixed(1),
        },
      ],
      ["requests", "rows", "disk", "minutes"],
    ),
    listPart("notices", notices, { toText: describeNotice }),
    unselectedPart(notSelected),
    { json: { assumptions: basis }, lines: [wrapText(basis, "- ")] },
  ];
}
