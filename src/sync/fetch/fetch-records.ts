import { decodePage } from "../../ingest/decode/decode-page.ts";
import type { StreamRecords } from "../../model/records.ts";
import { decodeBody } from "../../model/response-body.ts";
import { type Stream, streamTable } from "../../model/streams.ts";
import type { RequestSender } from "../../service/client/client.ts";
import { requestPriority, type ServiceRequest } from "../../service/http/request.ts";
import { walkListPages } from "../../service/pagination/list-walk.ts";

/*
 * Records that are not stored, so this thread decodes them.
 */

/** Fetches one page of a stream, with a small request. */
export function fetchPage<S extends Stream>(
  client: Pick<RequestSender, "request">,
  stream: S,
  request: Omit<ServiceRequest, "endpoint">,
) {
  const { endpoint } = streamTable[stream];
  return client.request({ endpoint, priority: requestPriority.head, ...request }, async (body) => ({
    ...decodePage(stream, decodeBody(body)),
    ageMs: body.ageMs,
  }));
}

export async function fetchAllRecords<S extends "assets" | "markets" | "exchanges" | "market_caps">(
  client: RequestSender,
  stream: S,
  signal: AbortSignal,
): Promise<StreamRecords[S][]> {
  const all: StreamRecords[S][] = [];
  const list = { endpoint: streamTable[stream].endpoint, priority: requestPriority.head, signal };
  const pages = walkListPages(client, list, async (body) => {
    const { records, rawCount, nextId } = decodePage(stream, decodeBody(body));
    return { records, rows: rawCount, nextId };
  });
  for await (const page of pages) all.push(...page.records);
  return all;
}
