import { exitCode, Failure } from "../../model/failure.ts";
import {
  computeWindowStart,
  type HistoryStream,
  streamTable,
  WINDOW_MARGIN_MICROS,
} from "../../model/streams.ts";
import { formatToMillisecond, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { anchorForRow } from "../../service/pagination/request-page.ts";
import { ledgerKeyText, wasNotFound } from "../../warehouse/coverage/ledger.ts";
import { findNewestRow, findOtherServedSeries } from "../../warehouse/rows/row-queries.ts";
import {
  classifyError,
  isInvalidResponse,
  retryUntilDone,
  type SyncContext,
  serviceNow,
  toProblem,
} from "../context/context.ts";
import { fetchPage } from "../fetch/fetch-records.ts";
import type { SliceWalk, WalkedSeries } from "./walk-planner.ts";
import {
  reportClaims,
  type SliceResult,
  unconfirmedFailure,
  type WalkOptions,
  walkSlice,
} from "./walk-slice.ts";

type WalkOutcome =
  | {
      readonly kind: "filled";
      readonly result: SliceResult;
      /** Set if the service claims not to have many stored rows: their range is open until it has repeated that. */
      readonly unconfirmed: Failure | undefined;
    }
  /** An exploring walk found nothing. */
  | { readonly kind: "empty" }
  /** The index does not exist: the answer is about the whole series. */
  | { readonly kind: "not_found" }
  /** The profile lacks a scope, so the rest of the index family would fail too. */
  | { readonly kind: "forbidden"; readonly error: unknown }
  | {
      readonly kind: "failed";
      readonly error: unknown;
      /** The service was answering, so the failure counts towards the maximum number of tries. */
      readonly countsAsTry: boolean;
    };

interface RunWalkOptions extends WalkOptions {
  /** Decides whether to trust a 404 or 400. Default: a 404 is believed, and changes nothing. */
  readonly notFound?: NotFoundAnswers | undefined;
  /** Repeat a walk that fails. Default: the caller plans again. */
  readonly shouldRetry?: boolean;
}

/** Walks one slice and says what came of it, for every source of walks. Throws only errors that end the run. */
export async function runWalk(
  context: SyncContext,
  walk: SliceWalk,
  { notFound, shouldRetry = false, ...options }: RunWalkOptions = {},
): Promise<WalkOutcome> {
  const { stats } = context;
  const successesBefore = stats.successCount;
  const onFound = () => notFound?.recordFound(walk.series);
  const work = () => walkSlice(context, walk, { ...options, onFound });
  try {
    const result = await (shouldRetry ? retryUntilDone(context, work) : work());
    if (result.isUnexplored) return { kind: "empty" };
    onFound();
    const unconfirmed = result.unconfirmed > 0 ? unconfirmedFailure(walk, result.unconfirmed) : undefined;
    return { kind: "filled", result, unconfirmed };
  } catch (error) {
    const rejection = error instanceof Failure && error.code === "rejected" ? error : undefined;
    switch (rejection && notFound ? "not_found" : classifyError(error, stats.successCount)) {
      case "stop":
        throw error;
      case "not_found": {
        const range = { from: options.progress?.from ?? walk.range.from, to: walk.range.to };
        const doubt = await notFound?.commit(walk, range, rejection);
        if (doubt) return { kind: "failed", error: doubt, countsAsTry: true };
        stats.forStream(walk.series.key.stream).doneMicros += range.to - range.from;
        return { kind: "not_found" };
      }
      case "forbidden":
        return { kind: "forbidden", error };
      default:
        return {
          kind: "failed",
          error,
          countsAsTry: isInvalidResponse(error) || stats.successCount > successesBefore,
        };
    }
  }
}

/** How long the result of an endpoint probe is reused, because many series may get a 404 at once. */
const PROBE_TTL_MS = 10_000;

/**
 * Passes on the answer that an index does not exist: a 404, or a 400 for an index that never had a row. It does not count if the
 * endpoint finds no other index either, or if this run has found the index.
 */
export class NotFoundAnswers {
  readonly #context: SyncContext;
  readonly #foundSeries = new Set<string>();
  readonly #probes = new Map<HistoryStream, { readonly at: number; readonly isHealthy: Promise<boolean> }>();

  constructor(context: SyncContext) {
    this.#context = context;
  }

  recordFound({ key }: WalkedSeries): void {
    this.#foundSeries.add(ledgerKeyText(key));
  }

  /** `rejection`: the service answered 400. Returns why the answer does not count: something else is wrong. */
  async commit(
    { series, isHead }: SliceWalk,
    range: TimeRange,
    rejection: Failure | undefined,
  ): Promise<Failure | undefined> {
    const { reader, settings, ingest, signal } = this.#context;
    const { key, indexType, period, settleDelay, quietMargin, serviceWindow } = series;
    // The index exists, and only this range fails. A delisted index fails at its head.
    if (this.#foundSeries.has(ledgerKeyText(key)) && (rejection || !isHead))
      return rejection ?? onlyRangeFailure(series);
    const doubt = wasNotFound(reader, key) ? undefined : await this.#findDoubt(series, rejection);
    if (doubt) return doubt;
    const timing = { period, settleDelay, quietMargin, serviceWindow };
    const answer = { key, indexType, range, timing, confirmation: settings.withdrawals };
    reportClaims(this.#context, series, await ingest.call("commitNotFound", answer, signal));
    return undefined;
  }

  async #findDoubt(series: WalkedSeries, rejection: Failure | undefined): Promise<Failure | undefined> {
    const context = this.#context;
    const { reader } = context;
    const { key, serviceWindow, indexType } = series;
    const servedSince = computeWindowStart(serviceWindow, serviceNow(context)) + WINDOW_MARGIN_MICROS;
    const servedRange = { from: servedSince, to: Number.MAX_SAFE_INTEGER };
    const isServed = findNewestRow(reader, key, servedRange) !== undefined;
    if (rejection) {
      if (isServed) return rejection;
      const other = findOtherServedSeries(reader, key, servedSince, indexType);
      const probe = other ?? { indexType, ts: serviceNow(context) };
      return (await findsAny(context, key.stream, [probe])) ? undefined : rejection;
    }
    if (!isServed) return undefined;
    return (await this.#isEndpointHealthy(series, servedSince)) ? undefined : endpointFailure(series);
  }

  /** Whether the endpoint finds another stored series or, because all stored ones may be delisted, any series. */
  #isEndpointHealthy({ key, indexType }: WalkedSeries, servedSince: Micros): Promise<boolean> {
    const context = this.#context;
    const at = context.clock.monotonic();
    const recent = this.#probes.get(key.stream);
    if (recent && at - recent.at < PROBE_TTL_MS) return recent.isHealthy;
    const otherSeries = findOtherServedSeries(context.reader, key, servedSince);
    const anyOfType = { indexType, ts: serviceNow(context) };
    const isHealthy = findsAny(context, key.stream, otherSeries ? [otherSeries, anyOfType] : [anyOfType]);
    this.#probes.set(key.stream, { at, isHealthy });
    return isHealthy;
  }
}

interface SeriesProbe {
  readonly indexType: string;
  /** Absent: any index. */
  readonly indexId?: string;
  readonly ts: Micros;
}

async function findsAny(context: SyncContext, stream: HistoryStream, probes: readonly SeriesProbe[]) {
  const { client, stats, signal, log } = context;
  const endpoint = streamTable[stream].endpoint;
  let lastCode: string | undefined;
  for (const { ts, ...filters } of probes) {
    const query = { ...filters, timestamp: formatToMillisecond(anchorForRow(endpoint, ts)), size: 1 };
    try {
      const { rawCount } = await fetchPage(client, stream, { query, signal });
      if (rawCount > 0) return true;
    } catch (error) {
      if (classifyError(error, stats.successCount) === "stop") throw error;
      lastCode = toProblem(stream, undefined, error).code;
    }
  }
  log.error({ endpoint, code: lastCode }, "endpoint no longer finds any index");
  return false;
}

function onlyRangeFailure({ key, indexType, name }: WalkedSeries): Failure {
  return new Failure(`${streamTable[key.stream].endpoint} no longer finds ${indexType} ${name} (404)`, {
    code: "denied",
    remedy: "the service serves its newest records, so the index exists: the older range stays open",
    exit: exitCode.incomplete,
  });
}

function endpointFailure({ key }: WalkedSeries): Failure {
  return new Failure(
    `${streamTable[key.stream].endpoint} no longer finds any index that it has served (404)`,
    {
      code: "upstream_version",
      remedy: "the gaps stay open; if it lasts, check service.baseUrl and contact the service's operator",
    },
  );
}
