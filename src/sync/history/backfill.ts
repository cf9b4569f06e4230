import { nearest } from "../../model/did-you-mean.ts";
import { type ExitCode, exitCode, Failure } from "../../model/failure.ts";
import { select } from "../../model/selector.ts";
import { hasHistory, type Stream, streamOfEndpoint, streams, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SyncSettings } from "../context/context.ts";
import { type Intake, serviceNow } from "../context/context.ts";
import type { Problem } from "../context/error-policy.ts";
import type { StreamTally } from "../context/run-stats.ts";
import { takeSnapshots } from "../polling/one-shot.ts";
import type { Directory } from "../selection/directory.ts";
import { endDeselected } from "../selection/exchanges.ts";
import { prepare } from "../selection/refresh.ts";
import { fillHoles } from "./fill-gaps.ts";
import { type Narrowing, openHoles } from "./gap-planner.ts";

/** What of all that is wanted this run fills; left out: everything. */
export interface BackfillScope {
  readonly streams?: ReadonlySet<Stream>;
  /** Symbols, pairs, names or ids. */
  readonly series?: readonly string[];
  readonly window?: TimeRange;
}

export interface Backfill {
  readonly settings: SyncSettings;
  readonly reader: Connection;
  readonly random: Random;
  readonly scope: BackfillScope;
}

export interface StreamReport extends Readonly<StreamTally> {
  readonly stream: Stream;
  /** Ranges that stayed open. */
  readonly open: number;
}

export interface BackfillReport {
  readonly finishedAt: Micros;
  /** Holes were looked for up to this moment of the service's clock. */
  readonly asOf: Micros;
  readonly seconds: number;
  /** Of the streams that this run was about. */
  readonly streams: readonly StreamReport[];
  readonly problems: readonly Problem[];
  readonly exit: ExitCode;
}

/** Looks up, declares what is wanted, fills its holes, and takes one snapshot of each latest-only stream. */
export async function backfill(
  intake: Intake,
  { settings, reader, random, scope }: Backfill,
): Promise<BackfillReport> {
  const isNarrow = scope.series !== undefined || scope.window !== undefined;
  const isWanted = (stream: Stream) => scope.streams?.has(stream) ?? (!isNarrow || hasHistory(stream));
  const begun = intake.clock.monotonic();

  const { directory, problems: first } = await prepare(intake, {
    settings,
    reader,
    random,
    storeMarketCaps: isWanted("market_caps"),
  });
  await endDeselected(intake, settings, directory);
  const narrowing: Narrowing = {
    streams: new Set(streams.filter(isWanted)),
    indexIds: scope.series && indicesNamed(scope.series, directory),
    window: scope.window,
  };
  const { refreshSeconds, concurrency } = settings;
  const filling = { reader, random, refreshSeconds, concurrency, narrowing };
  const filled = await fillHoles(intake, filling);
  const missed = await takeSnapshots(intake, { settings, directory, random, isWanted });

  const left = openHoles(reader, filled.asOf, narrowing);
  const problems = [...first, ...filled.problems, ...missed];
  await noteStreams(intake, streams.filter(isWanted), problems);
  const about = streams.filter((stream) => isActive(stream, settings, isWanted));
  const reports = about.map((stream): StreamReport => {
    const own = left.filter(({ line }) => line.stream === stream);
    const open = own.reduce((sum, line) => sum + line.open.length, 0);
    return { stream, ...intake.tally.of(stream), open };
  });
  const isWhole = problems.length === 0 && reports.every(({ open, rejected }) => open + rejected === 0);
  return {
    finishedAt: serviceNow(intake),
    asOf: filled.asOf,
    seconds: (intake.clock.monotonic() - begun) / 1000,
    streams: reports,
    problems,
    exit: isWhole ? exitCode.ok : exitCode.incomplete,
  };
}

function isActive(
  stream: Stream,
  { streams: settings }: SyncSettings,
  isWanted: (stream: Stream) => boolean,
): boolean {
  return isWanted(stream) && settings[streamTable[stream].setting] !== false;
}

/** The ids of the indices that people name. An unknown one is a mistake of the command line, before anything is filled. */
function indicesNamed(names: readonly string[], { GWA, MWA, LX }: Directory): ReadonlySet<string> {
  const candidates = [...GWA, ...MWA, ...LX];
  const { ids, unknown } = select({ kind: "list", names }, candidates, undefined);
  const [first] = unknown;
  if (first !== undefined) {
    const meant = nearest(
      first,
      candidates.flatMap(({ labels }) => labels),
    );
    throw new Failure(`--series: there is no index ${first}`, {
      family: "operator",
      code: "usage",
      remedy: meant ? `did you mean ${meant}?` : "give a symbol, a pair, a name or an id",
      exit: exitCode.usage,
    });
  }
  return new Set(ids);
}

async function noteStreams(
  intake: Intake,
  about: readonly Stream[],
  problems: readonly Problem[],
): Promise<void> {
  const { client, ingest, signal } = intake;
  const { parked } = client.health();
  const notes = about.map((stream) => ({
    stream,
    error: problems.find((problem) => problem.stream === stream)?.message ?? null,
    missingScopes: [
      ...new Set(
        parked
          .filter(({ endpoint }) => streamOfEndpoint(endpoint) === stream)
          .flatMap(({ scopes }) => scopes),
      ),
    ],
  }));
  await ingest.call("commitStreamNotes", notes, [], signal);
}
