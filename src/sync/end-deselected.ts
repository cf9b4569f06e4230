import { select } from "../model/selector.ts";
import type { Directory } from "./directory.ts";
import { selectExchanges } from "./exchange-selection.ts";
import { type Intake, serviceNow } from "./intake.ts";
import type { SyncSettings } from "./sync-settings.ts";

/**
 * Ends the observation of what the settings no longer ask for, now: a stream that is switched off is polled by nobody who
 * could say so later.
 */
export async function endDeselected(
  { client, clock, ingest, signal }: Intake,
  settings: SyncSettings,
  directory: Directory,
): Promise<void> {
  const { derivatives, marketCap } = settings.streams;
  const at = serviceNow({ client, clock });
  const tickers = selectExchanges(settings, directory);
  const followed = {
    // Without a ranking nobody can say which markets are meant; what is followed stays followed.
    exchange_ticks: tickers.isResolved ? tickers.lines : undefined,
    derivative_ticks:
      derivatives === false ? [] : select(derivatives.exchanges, directory.exchanges, undefined).ids,
    market_caps: marketCap === false ? [] : [null],
  };
  for (const stream of ["exchange_ticks", "derivative_ticks", "market_caps"] as const) {
    const exchangeIds = followed[stream];
    if (exchangeIds === undefined) continue;
    await ingest.call("commitSubscriptions", { stream, exchangeIds, at }, [], signal);
  }
}
