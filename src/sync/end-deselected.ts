import { select } from "../model/selector.ts";
import type { Directory } from "./directory.ts";
import { type Intake, serviceNow } from "./intake.ts";
import type { SyncedStreams } from "./sync-settings.ts";

/**
 * Ends the observation of what the settings no longer ask for, now: a stream that is switched off is polled by nobody who
 * could say so later.
 */
export async function endDeselected(
  intake: Intake,
  streams: SyncedStreams,
  directory: Directory,
): Promise<void> {
  const { exchangeTickers, derivatives, marketCap } = streams;
  const at = serviceNow(intake);
  const followed = {
    // Which lines a selection of tickers has is known to those who follow them.
    exchange_ticks: exchangeTickers === false ? [] : undefined,
    derivative_ticks:
      derivatives === false ? [] : select(derivatives.exchanges, directory.exchanges, undefined).ids,
    market_caps: marketCap === false ? [] : [null],
  };
  for (const stream of ["exchange_ticks", "derivative_ticks", "market_caps"] as const) {
    const exchangeIds = followed[stream];
    if (exchangeIds === undefined) continue;
    await intake.ingest.call("commitSubscriptions", { stream, exchangeIds, at }, [], intake.signal);
  }
}
