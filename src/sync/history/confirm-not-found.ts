import { decodePage } from "../../ingest/decode/page.ts";
import { exitCode, Failure } from "../../model/failure.ts";
import { decodeBody } from "../../model/response-body.ts";
import { type HistoryStream, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { requestPriority } from "../../service/http/request.ts";
import { WINDOW_MARGIN_MICROS } from "../../service/pagination/cross-checks.ts";
import { anchorForRow, formatToMillisecond } from "../../service/pagination/page.ts";
import { computeWindowStart } from "../../warehouse/coverage/gaps.ts";
import { ledgerKeyText } from "../../warehouse/coverage/ledger.ts";
import { wasNotFound } from "../../warehouse/coverage/not-found.ts";
import { findOtherServedSeries, hasRowsSince } from "../../warehouse/rows/row-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type SyncContext, serviceNow } from "../context/context.ts";
import { classifyError, toProblem } from "../context/error-policy.ts";
import type { SliceWalk } from "./walk-slice.ts";

/** `confirmed`: the service has nothing of the index. `unconfirmed`: the range stays open, for the reason in `error`. */
type NotFoundDecision =
  | { readonly kind: "confirmed" }
  | { readonly kind: "unconfirmed"; readonly error: Failure; readonly countsAsTry: boolean };

/** Two 404s closer together than this may have one cause. Must be shorter than the retry delay. */
const MIN_CONFIRM_INTERVAL_MS = 2_000;
/** How long the result of an endpoint probe is reused, because many series may get a 404 at once. */
const PROBE_TTL_MS = 10_000;

/**
 * Decides whether a 404 means that an index does not exist. For an index without rows in the service's window, one 404 is
 * enough. Otherwise the 404 must repeat after a pause, and the endpoint must still find another index. If it finds none,
 * the endpoint is broken and the range stays open.
 */
export class NotFoundConfirmer {
  readonly #reader: Connection;
  /** Monotonic time of the first 404 or 400 of each series. */
  readonly #notFoundSince = new Map<string, number>();
  readonly #foundSeries = new Set<string>();
  readonly #probes = new Map<HistoryStream, { readonly at: number; readonly isHealthy: Promise<boolean> }>();

  constructor(reader: Connection) {
    this.#reader = reader;
  }

  /** Call when the service has returned the series. */
  recordFound({ key }: SliceWalk): void {
    this.#notFoundSince.delete(ledgerKeyText(key));
    this.#foundSeries.add(ledgerKeyText(key));
  }

  async confirm(context: SyncContext, walk: SliceWalk): Promise<NotFoundDecision> {
    const { key, serviceWindow } = walk;
    const now = serviceNow(context);
    const servedSince = computeWindowStart(serviceWindow, now) + WINDOW_MARGIN_MICROS;
    if (wasNotFound(this.#reader, key) || !hasRowsSince(this.#reader, key, servedSince))
      return { kind: "confirmed" };
    // This run has found the series, so the index exists and only this range fails. A delisted index fails at its head.
    if (!walk.isHead && this.#foundSeries.has(ledgerKeyText(key)))
      return { kind: "unconfirmed", error: unconfirmedFailure(walk), countsAsTry: true };
    // Slices of one series may get their first 404 at the same time. That counts as one 404, not as several tries.
    if (!this.#isRepeated(context, walk))
      return { kind: "unconfirmed", error: unconfirmedFailure(walk), countsAsTry: false };
    if (!(await this.#isEndpointHealthy(context, walk, servedSince)))
      return { kind: "unconfirmed", error: endpointFailure(walk), countsAsTry: true };
    this.#notFoundSince.delete(ledgerKeyText(key));
    return { kind: "confirmed" };
  }

  /**
   * Decides whether a 400 means that the service has no such index (a GWA of a fiat currency): it repeats, the index has
   * no row, and the service still serves another index of the same type.
   */
  async confirmRejected(
    context: SyncContext,
    walk: SliceWalk,
    rejection: Failure,
  ): Promise<NotFoundDecision> {
    const { key, serviceWindow, indexType } = walk;
    const servedSince = computeWindowStart(serviceWindow, serviceNow(context)) + WINDOW_MARGIN_MICROS;
    const refused = { kind: "unconfirmed", error: rejection, countsAsTry: true } as const;
    if (this.#foundSeries.has(ledgerKeyText(key)) || hasRowsSince(this.#reader, key, servedSince))
      return refused;
    if (wasNotFound(this.#reader, key)) return { kind: "confirmed" };
    if (!this.#isRepeated(context, walk))
      return { kind: "unconfirmed", error: unconfirmedFailure(walk, rejection), countsAsTry: false };
    const otherSeries = findOtherServedSeries(this.#reader, key, servedSince, indexType);
    if (!otherSeries || !(await findsAny(context, key.stream, [otherSeries]))) return refused;
    this.#notFoundSince.delete(ledgerKeyText(key));
    return { kind: "confirmed" };
  }

  /** Whether the service gave the same answer some seconds ago. */
  #isRepeated({ clock }: SyncContext, { key }: SliceWalk): boolean {
    const at = clock.monotonic();
    const since = this.#notFoundSince.get(ledgerKeyText(key)) ?? at;
    this.#notFoundSince.set(ledgerKeyText(key), since);
    return at - since >= MIN_CONFIRM_INTERVAL_MS;
  }

  /** Whether the endpoint finds another stored series or, because all stored ones may be delisted, any series. */
  #isEndpointHealthy(
    context: SyncContext,
    { key, indexType }: SliceWalk,
    servedSince: Micros,
  ): Promise<boolean> {
    const at = context.clock.monotonic();
    const recent = this.#probes.get(key.stream);
    if (recent && at - recent.at < PROBE_TTL_MS) return recent.isHealthy;
    const otherSeries = findOtherServedSeries(this.#reader, key, servedSince);
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

async function findsAny(
  context: SyncContext,
  stream: HistoryStream,
  probes: readonly SeriesProbe[],
): Promise<boolean> {
  const { client, stats, signal, log } = context;
  const endpoint = streamTable[stream].endpoint;
  let lastCode: string | undefined;
  for (const { ts, ...filters } of probes) {
    const query = { ...filters, timestamp: formatToMillisecond(anchorForRow(endpoint, ts)), size: 1 };
    try {
      const rows = await client.request(
        { endpoint, query, priority: requestPriority.head, signal },
        async (body) => {
          const { rawCount } = decodePage(stream, decodeBody(body));
          return rawCount;
        },
      );
      if (rows > 0) return true;
    } catch (error) {
      if (classifyError(error, stats.successCount) === "stop") throw error;
      lastCode = toProblem(stream, undefined, error).code;
    }
  }
  log.error({ endpoint, code: lastCode }, "endpoint no longer finds any index");
  return false;
}

function unconfirmedFailure({ key, indexType, name }: SliceWalk, rejection?: Failure): Failure {
  const { endpoint } = streamTable[key.stream];
  return rejection
    ? new Failure(`${endpoint} refuses ${indexType} ${name} (400)`, {
        code: "denied",
        remedy: "the range stays open; the index is asked for again before it counts as empty",
        exit: exitCode.incomplete,
        cause: rejection,
      })
    : new Failure(`${endpoint} no longer finds ${indexType} ${name} (404)`, {
        code: "denied",
        remedy:
          "the range stays open; the 404 is confirmed later, because the service has served this index before",
        exit: exitCode.incomplete,
      });
}

function endpointFailure({ key }: SliceWalk): Failure {
  return new Failure(
    `${streamTable[key.stream].endpoint} no longer finds any index that it has served (404)`,
    {
      code: "upstream_version",
      remedy: "the gaps stay open; if it lasts, check service.baseUrl and contact the service's operator",
      exit: exitCode.incomplete,
    },
  );
}
