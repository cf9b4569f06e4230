import type { Connection } from "./connection.ts";

/** The markets of each exchange, by its id, as far as the lookups name them. */
export function marketsByExchange(connection: Connection): Map<string, string[]> {
  const rows = connection
    .statement(
      "SELECT exchange_id, market_id FROM exchange_markets WHERE delisted_at IS NULL ORDER BY exchange_id, market_id",
    )
    .raw()
    .all() as [string, string][];
  const markets = new Map<string, string[]>();
  for (const [exchangeId, marketId] of rows) {
    const own = markets.get(exchangeId);
    if (own) own.push(marketId);
    else markets.set(exchangeId, [marketId]);
  }
  return markets;
}
