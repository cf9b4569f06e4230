import { decodePage } from "../../ingest/decode/page.ts";
import { failureCode } from "../../model/failure.ts";
import { decodeBody } from "../../model/response-body.ts";
import type { SelectorCandidate } from "../../model/selector.ts";
import { type HistoryStream, streamTable } from "../../model/streams.ts";
import { formatTimestamp, MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { RequestSender } from "../../service/client/client.ts";
import { requestPriority } from "../../service/http/request.ts";
import { readStoredIndices } from "../../warehouse/lookups/lookup-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";

/** Large enough for a record of each liquid index, since there are only a few. */
const PAGE_SIZE = 100;

/** Fetches the ids of the liquid indices from their latest records, because no lookup lists them. */
export async function fetchLiquidIndices(
  client: RequestSender,
  now: Micros,
  signal: AbortSignal,
): Promise<string[]> {
  const fetchFrom = (stream: HistoryStream) => {
    const { endpoint } = streamTable[stream];
    const timestamp = `${formatTimestamp(now + MICROS_PER_DAY).slice(0, 19)}Z`;
    const query = { indexType: "LX", timestamp, size: PAGE_SIZE };
    return client.request({ endpoint, query, priority: requestPriority.head, signal }, async (body) => {
      const { records } = decodePage(stream, decodeBody(body));
      const liquid = records.filter(({ indexType }) => indexType === "LX");
      return [...new Set(liquid.map(({ indexId }) => indexId))];
    });
  };
  try {
    return await fetchFrom("index_ticks");
  } catch (error) {
    // A profile without access to ticks may still have access to bars.
    if (failureCode(error) !== "forbidden") throw error;
    return fetchFrom("ohlcv");
  }
}

/** The liquid indices from the settings, the warehouse and the service, as selector candidates. */
export function liquidCandidates(
  configured: Readonly<Record<string, string>>,
  reader: Connection | undefined,
  fetchedIds: readonly string[],
): SelectorCandidate[] {
  const labels = new Map<string, Set<string>>();
  const add = (id: string, label?: string) => {
    const known = labels.get(id) ?? new Set();
    if (label !== undefined && label !== id) known.add(label);
    labels.set(id, known);
  };
  for (const [name, id] of Object.entries(configured)) add(id, name);
  for (const { id, name } of reader ? readStoredIndices(reader, "LX") : []) add(id, name ?? undefined);
  for (const id of fetchedIds) add(id);
  return [...labels].map(([id, names]) => ({ id, labels: [...names] }));
}
