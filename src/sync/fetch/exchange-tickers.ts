import { Failure } from "../../model/failure.ts";
import { streamTable } from "../../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { SnapshotPart } from "../../rule/snapshot.ts";
import { requestPriority } from "../../service/http/request.ts";
import { REPEATED } from "../../service/limits.ts";
import { describeRequest, type SyncContext, serviceNow } from "../context/context.ts";
import { fetchIfAllowed, recordSnapshot, storeSnapshotPages } from "./record-snapshot.ts";

const stream = "exchange_ticks";
const { endpoint } = streamTable[stream];

interface ExchangeTicksOptions {
  /** Null: all exchanges. */
  readonly exchangeId: string | null;
  /** Markets to store; undefined: all. */
  readonly markets: ReadonlySet<string> | undefined;
  readonly refreshSeconds: number;
}

/**
 * Fetches one snapshot of the tickers. A refresh of the service between two pages tears the list: its rows are stored
 * under their own timestamps, the list is fetched again, and only a list from one period counts as coverage.
 *
 * The ledger records a torn period as `lost`, reason `not observed`. Its rows get no `quality` flag, because each row is
 * correct, and users who filter by `quality` would discard correct prices.
 *
 * Returns the start of the period that the list shows, which may be an earlier one than the present; undefined if it is empty.
 */
export async function fetchExchangeTicks(
  context: SyncContext,
  options: ExchangeTicksOptions,
): Promise<Micros | undefined> {
  const cadence = options.refreshSeconds * MICROS_PER_SECOND;
  const { exchangeId } = options;
  return fetchIfAllowed(context, { stream, exchangeId, cadence }, () =>
    pollUntilWhole(context, options, cadence),
  );
}

async function pollUntilWhole(
  context: SyncContext,
  options: ExchangeTicksOptions,
  cadence: Micros,
): Promise<Micros | undefined> {
  const { log } = context;
  for (let poll = 1; poll <= REPEATED; poll++) {
    const askedAt = serviceNow(context);
    const list = await pollOnce(context, options);
    const [period, ...others] = new Set(list.timestamps.map((ts) => Math.floor(ts / cadence) * cadence));
    if (others.length === 0) {
      const { exchangeId } = options;
      await recordSnapshot(context, { stream, exchangeId, cadence, parts: [list], askedAt });
      return period;
    }
    log.debug({ exchangeId: options.exchangeId, poll }, "ticker list torn by a refresh");
  }
  throw new Failure(
    `the service refreshed the exchange tickers during each of ${REPEATED} fetches: nothing is covered`,
    {
      code: "torn_list",
      remedy:
        "it is fetched again; if this lasts, the service sends the list more slowly than it refreshes it",
    },
  );
}

async function pollOnce(
  context: SyncContext,
  { exchangeId, markets }: ExchangeTicksOptions,
): Promise<SnapshotPart> {
  const filters = exchangeId === null ? {} : { exchangeId };
  const list = { endpoint, filters, priority: requestPriority.snapshot };
  const request = describeRequest(endpoint, filters);
  return storeSnapshotPages(context, { stream, request, ...(markets ? { markets } : {}) }, list);
}
