import { type Body, decodeBody, malformedBody } from "../../../src/model/response-body.ts";
import { parseInstant } from "../../../src/model/time.ts";
import { seededRandom } from "../../../src/runtime/backoff.ts";
import type { Log } from "../../../src/runtime/log.ts";
import {
  createServiceClient,
  type ServiceClient,
  type ServiceClientOptions,
} from "../../../src/service/client/client.ts";
import type { Observation } from "../../../src/service/http/events.ts";
import type { PageFacts } from "../../../src/service/pagination/page.ts";
import type { TurnedClock } from "../manual-clock.ts";
import { seed } from "../seed.ts";

export interface ClientUnderTest {
  readonly client: ServiceClient;
  readonly logged: { fields: unknown; message: string }[];
  readonly observed: Observation[];
}

export function clientOf(
  baseUrl: string,
  clock: TurnedClock,
  options: Partial<ServiceClientOptions> = {},
): ClientUnderTest {
  const logged: { fields: unknown; message: string }[] = [];
  const observed: Observation[] = [];
  const line = (fields: unknown, message: string) => void logged.push({ fields, message });
  const log: Log = { debug: line, info: line, warn: line, error: line };
  const client = createServiceClient({
    baseUrl,
    authUrl: baseUrl,
    wsUrl: `${baseUrl.replace(/^http/, "ws")}/v3/stream`,
    clientId: "tester",
    readSecret: async () => "a-secret-for-tests",
    concurrency: 8,
    maxRequestsPerSecond: 0,
    clock,
    random: seededRandom(seed),
    log,
    observe: (observation) => void observed.push(observation),
    ...options,
  });
  return { client, logged, observed };
}

interface Row {
  id: string;
  timestamp?: string;
}
export interface ReadPage extends PageFacts {
  readonly content: Row[];
}

/** What the ingest thread does, in miniature. */
export async function readPage(body: Body): Promise<ReadPage> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(decodeBody(body)));
  } catch {
    throw malformedBody("not JSON");
  }
  const { content, nextId } = (value ?? {}) as { content?: unknown; nextId?: unknown };
  if (!Array.isArray(content)) throw malformedBody("no content");
  const rows = content as Row[];
  const moments = rows
    .map(({ timestamp }) => parseInstant(timestamp ?? ""))
    .filter((each) => each !== undefined);
  return {
    content: rows,
    rows: rows.length,
    nextId: typeof nextId === "string" && nextId !== "" ? nextId : undefined,
    oldest: moments.length > 0 ? moments.reduce((a, b) => Math.min(a, b)) : undefined,
    newest: moments.length > 0 ? moments.reduce((a, b) => Math.max(a, b)) : undefined,
    descending: moments.every((moment, at) => at === 0 || moment <= (moments[at - 1] ?? moment)),
  };
}
