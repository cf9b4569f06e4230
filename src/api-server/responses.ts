import { ApiError } from "./api-error.ts";
import type { Choices } from "./choices.ts";
import type { ApiResponse } from "./interceptor.ts";
import type { SourceState } from "./source.ts";

/** A GET request of a caller with these scopes. */
export interface EndpointRequest {
  readonly state: SourceState;
  readonly choices: Choices;
  readonly query: URLSearchParams;
  readonly scopes: ReadonlySet<string>;
}

/** A page with these records. `nextId`: undefined for a page without it. */
export function formatPage(records: readonly string[], nextId?: string | null): string {
  const next = nextId === undefined ? "" : `,"nextId":${JSON.stringify(nextId)}`;
  return `{"content":[${records.join(",")}]${next}}`;
}

/** The `nextId` of a page that ends with the record `lastId`. */
export function nextIdOf(
  { lastPage }: Choices,
  hasMore: boolean,
  lastId: string | undefined,
): string | null | undefined {
  if (hasMore || lastPage === "own-id") return lastId ?? null;
  return { null: null, empty: "", absent: undefined }[lastPage];
}

export const okResponse = (body: string, headers = {}): ApiResponse => ({ status: 200, body, headers });

export const listResponse = (records: readonly string[]) => okResponse(formatPage(records));

/** Throws 404 without a record. */
export function recordResponse([record]: readonly string[], missing: string): ApiResponse {
  if (record === undefined) throw new ApiError(404, missing);
  return okResponse(record);
}
