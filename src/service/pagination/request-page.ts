import { failureCode } from "../../model/failure.ts";
import { noListFailure, type ResponseBody } from "../../model/response-body.ts";
import { isSaidEnough } from "../../rule/repetition.ts";
import type { RequestSender } from "../client/client.ts";
import type { ServiceRequest } from "../http/request.ts";

/**
 * Requests one page of a list. Null, or 204, in place of the list counts as an empty one if a second request gets the same
 * and another request of this kind has got records: else the service may be unable to send any. A list that may be missing
 * needs no other one.
 */
export async function requestPage<P extends { readonly rows: number }>(
  client: RequestSender,
  request: ServiceRequest,
  read: (body: ResponseBody) => Promise<P>,
): Promise<P> {
  const { parking } = client;
  parking.assertListed(request);
  try {
    const page = await requestList(client, request, read);
    parking.recordList(request, page.rows);
    return page;
  } catch (error) {
    if (failureCode(error) === "no_list") parking.recordNoList(request);
    throw error;
  }
}

async function requestList<P>(
  client: RequestSender,
  request: ServiceRequest,
  read: (body: ResponseBody) => Promise<P>,
): Promise<P> {
  for (let answers = 1; ; answers++) {
    const isLast = isSaidEnough("null list", answers);
    try {
      return await client.request(request, isLast ? readNullAsEmpty : read);
    } catch (error) {
      if (isLast || failureCode(error) !== "null_list") throw error;
    }
  }

  async function readNullAsEmpty(body: ResponseBody): Promise<P> {
    // Made first, because the reader may transfer the body to another thread.
    const emptyList = { ...body, bytes: new TextEncoder().encode('{"content":[]}') };
    try {
      return await read(body);
    } catch (error) {
      if (failureCode(error) !== "null_list") throw error;
      if (!request.mayBeMissing && !client.parking.hasListed(request))
        throw noListFailure("null, and no request of this kind has had records");
      return read(emptyList);
    }
  }
}
