/** The answer to a request, before it is compressed. */
export interface ServeResponse {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function listResponse(
  records: readonly string[],
  { nextId, headers = {} }: { nextId?: string | null; headers?: Readonly<Record<string, string>> } = {},
): ServeResponse {
  const next = nextId === undefined ? "" : `,"nextId":${nextId === null ? "null" : `"${nextId}"`}`;
  return { body: `{"content":[${records.join(",")}]${next}}`, headers };
}
