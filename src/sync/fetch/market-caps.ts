import { decodePage } from "../../ingest/decode/page.ts";
import type { MarketCap } from "../../model/records.ts";
import { decodeBody } from "../../model/response-body.ts";
import { streamTable } from "../../model/streams.ts";
import { MICROS_PER_SECOND } from "../../model/time.ts";
import { priority } from "../../service/http/request.ts";
import { followList } from "../../service/pagination/list-walk.ts";
import { type Intake, requestText } from "../context/context.ts";
import { observeLists, PagesSeen } from "./record-snapshot.ts";

const { endpoint } = streamTable.market_caps;
const filters = { percentChange: true };

/**
 * Takes the ranking once. With `every` (seconds) it is also stored and counts as an observation; without, only the order
 * is wanted. Returns the assets' ids, largest first.
 */
export async function takeMarketCaps(intake: Intake, every: number | undefined): Promise<string[]> {
  const { client, ingest, tally, signal } = intake;
  const caps: MarketCap[] = [];
  const seen = new PagesSeen();
  const list = { endpoint, filters, priority: priority.head, signal };
  const pages = followList(client, list, async (body) => {
    const { records } = decodePage("market_caps", decodeBody(body));
    return { records, ...(await ingest.call("readPage", { stream: "market_caps" }, [body], signal)) };
  });
  for await (const { page } of pages) {
    caps.push(...page.records);
    if (every === undefined) {
      await ingest.call("dropPages", [page.held]);
      continue;
    }
    const snapshot = {
      stream: "market_caps",
      held: page.held,
      request: requestText(endpoint, filters),
    } as const;
    const commit = await ingest.call("commitSnapshot", snapshot, [], signal);
    tally.wrote("market_caps", commit.written, commit);
    seen.add(commit);
  }
  if (every !== undefined) {
    const cadence = every * MICROS_PER_SECOND;
    await observeLists(intake, { stream: "market_caps", exchangeId: null, cadence, lists: [seen.list()] });
  }
  return ranked(caps);
}

/** By rank; where the service gives none, by size, after those that have one. */
export function ranked(caps: readonly MarketCap[]): string[] {
  const sorted = caps.toSorted(
    (a, b) =>
      (a.rank ?? Number.MAX_SAFE_INTEGER) - (b.rank ?? Number.MAX_SAFE_INTEGER) ||
      (b.marketCap?.real ?? 0) - (a.marketCap?.real ?? 0),
  );
  return [...new Set(sorted.map(({ assetId }) => assetId))];
}
