import { onTestFinished } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import { decodeBody, malformedBodyFailure, type ResponseBody } from "../../../src/model/response-body.ts";
import { type Micros, parseTimestamp } from "../../../src/model/time.ts";
import { createForwardingLog, type LogEntry } from "../../../src/runtime/log.ts";
import { createServiceClient, type ServiceClientOptions } from "../../../src/service/client/client.ts";
import type { ClientEvent } from "../../../src/service/http/client-events.ts";
import type { ServiceRequest } from "../../../src/service/http/request.ts";
import type { PageSummary } from "../../../src/service/pagination/request-page.ts";
import { ManualClock } from "../manual-clock.ts";
import { seed } from "../seed.ts";
import { seededRandom } from "../seeded-random.ts";
import { type StubServiceOptions, startStubService } from "./stub-service.ts";

type ClientOptions = Partial<ServiceClientOptions>;

export function createTestClient(baseUrl: string, clock: ManualClock, options: ClientOptions = {}) {
  const logLines: LogEntry[] = [];
  const events: ClientEvent[] = [];
  const client = createServiceClient({
    baseUrl,
    authUrl: baseUrl,
    clientId: "tester",
    readSecret: async () => "a-secret-for-tests",
    concurrency: 8,
    maxRequestsPerSecond: 0,
    clock,
    random: seededRandom(seed),
    log: createForwardingLog((entry) => logLines.push(entry)),
    onEvent: (event) => void events.push(event),
    ...options,
  });
  return { client, logLines, events };
}

export type ServedClient = Awaited<ReturnType<typeof startServedClient>>;

/** A service, a client of it, and the clock of both. They end with the test. */
export async function startServedClient(
  answers: Omit<StubServiceOptions, "clock"> = {},
  options: ClientOptions = {},
  clock = new ManualClock(),
) {
  const stub = await startStubService({ clock, ...answers });
  onTestFinished(() => stub.stop());
  const testClient = createTestClient(stub.baseUrl, clock, options);
  const { client } = testClient;
  /** Why the request fails; undefined: it does not. */
  const failureOf = (request: ServiceRequest) =>
    clock.runUntil(client.request(request, readPage).then(() => undefined, toFailure));
  return {
    ...testClient,
    clock,
    stub,
    /** Sends the request; time passes until it has its page. */
    send: (request: ServiceRequest) => clock.runUntil(client.request(request, readPage)),
    failureOf,
    codeOf: async (request: ServiceRequest) => (await failureOf(request))?.code,
    pass: (ms: number) => clock.runUntil(clock.sleep(ms)),
    /** Sends the request again and again, `everyMs` after each answer, until `signal` aborts. */
    async poll(
      request: ServiceRequest,
      everyMs: number,
      signal: AbortSignal,
      onPage: (page: ParsedPage) => void = () => {},
    ): Promise<void> {
      while (!signal.aborted) {
        await client.request({ ...request, signal }, readPage).then(onPage, () => {});
        await clock.sleep(everyMs, signal).catch(() => {});
      }
    },
  };
}

function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  throw error;
}

interface PageRecord {
  id: string;
  indexId?: string;
  timestamp?: string;
}
interface ParsedPage extends PageSummary {
  readonly content: PageRecord[];
  /** In page order. */
  readonly timestamps: readonly Micros[];
}

/** Summarises a page as the ingest thread does, for a walk. `isOwn`: whether a record counts. */
export async function readPage(
  body: ResponseBody,
  isOwn: (record: PageRecord) => boolean = () => true,
): Promise<ParsedPage> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(decodeBody(body)));
  } catch {
    throw malformedBodyFailure("not JSON");
  }
  const { content, nextId } = (value ?? {}) as { content?: unknown; nextId?: unknown };
  if (!Array.isArray(content)) throw malformedBodyFailure("no content");
  const rows = content as PageRecord[];
  const timestamps = rows
    .filter(isOwn)
    .map(({ timestamp }) => parseTimestamp(timestamp ?? ""))
    .filter((ts) => ts !== undefined);
  return {
    content: rows,
    timestamps,
    rows: rows.length,
    nextId: typeof nextId === "string" && nextId !== "" ? nextId : undefined,
    oldest: timestamps.length > 0 ? timestamps.reduce((a, b) => Math.min(a, b)) : undefined,
    newest: timestamps.length > 0 ? timestamps.reduce((a, b) => Math.max(a, b)) : undefined,
    isDescending: timestamps.every((ts, at) => at === 0 || ts <= (timestamps[at - 1] ?? ts)),
  };
}
