import { Failure } from "../../model/failure.ts";
import { streamTable } from "../../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { requestPriority } from "../../service/http/request.ts";
import { REPEATED } from "../../service/limits.ts";
import { describeRequest, type SyncContext, serviceNow } from "../context/context.ts";
import { fetchIfAllowed, recordSnapshot, storeSnapshotPages } from "./record-snapshot.ts";

const stream = "exchange_ticks";
const { endpoint } = streamTable[stream];

/**
 * Fetches one snapshot of the tickers. A refresh of the service between two pages tears the list: its rows are stored
 * under their own timestamps, the list is fetched again, and only a list from one period counts as coverage.
 *
 * The ledger records a torn period as `lost`, reason `not observed`. Its rows get no `quality` flag, because each row is
 * correct, and users who filter by `quality` would discard correct prices.
 *
 * `exchangeId`: null for all exchanges. `markets`: those to store; undefined: all. Returns the start of the period that the list shows,
 * which may be an earlier one than the present; undefined if it is empty.
 */
export async function fetchExchangeTicks(
  context: SyncContext,
  exchangeId: string | null,
  markets: ReadonlySet<string> | undefined,
): Promise<Micros | undefined> {
  const cadence = context.settings.refreshSeconds * MICROS_PER_SECOND;
  const snapshot = { stream, exchangeId, cadence } as const;
  const query = exchangeId === null ? {} : { exchangeId };
  const walk = { endpoint, query, priority: requestPriority.snapshot };
  const selected = {
    stream,
    request: describeRequest(endpoint, query),
    ...(markets && { markets }),
  } as const;
  return fetchIfAllowed(context, snapshot, async () => {
    for (let poll = 1; poll <= REPEATED; poll++) {
      const askedAt = serviceNow(context);
      const list = await storeSnapshotPages(context, selected, walk);
      const [period, ...others] = new Set(list.timestamps.map((ts) => Math.floor(ts / cadence) * cadence));
      if (others.length === 0) {
        await recordSnapshot(context, { ...snapshot, parts: [list], askedAt });
        return period;
      }
      context.log.debug({ exchangeId, poll }, "ticker list torn by a refresh");
    }
    throw new Failure(
      `the service refreshed the exchange tickers during each of ${REPEATED} fetches: nothing is covered`,
      {
        code: "torn_list",
        remedy:
          "it is fetched again; if this lasts, the service sends the list more slowly than it refreshes it",
      },
    );
  });
}
