import { afterAll, onTestFinished } from "vitest";
import type { Simulator, SimulatorOptions } from "../../simulator/simulator.ts";
import type { ManualClock } from "../manual-clock.ts";
import { startServer } from "./server-under-test.ts";

export interface RestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  readonly text: string;
  /** As JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  readonly body: any;
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Sends requests to the simulator over real HTTP. */
export class RestClient {
  readonly simulator: Simulator;
  readonly clock: ManualClock;
  token = "";

  private constructor(simulator: Simulator, clock: ManualClock) {
    this.simulator = simulator;
    this.clock = clock;
  }

  /** Starts a simulator on a manual clock, and a client with a token. `isLive`: the server gets new ticks. */
  static async start(
    options: SimulatorOptions = {},
    more: Parameters<typeof startServer>[1] = {},
  ): Promise<RestClient> {
    const { simulator, clock } = await startServer(options, more);
    const client = new RestClient(simulator, clock);
    await client.signIn();
    return client;
  }

  requestToken(
    overrides: Readonly<Record<string, unknown>> = {},
    contentType = "application/json",
  ): Promise<RestResponse> {
    const { baseUrl, clientId, clientSecret } = this.simulator;
    const client = { client_id: clientId, client_secret: clientSecret };
    const asked = { grant_type: "client_credentials", ...client, audience: baseUrl, ...overrides };
    const headers = { "content-type": contentType };
    return sendRequest(`${baseUrl}/v3/oauth/token`, { method: "POST", headers, body: JSON.stringify(asked) });
  }

  async fetchToken(audience = this.simulator.baseUrl): Promise<string> {
    return (await this.requestToken({ audience })).body.access_token;
  }

  async signIn(): Promise<void> {
    this.token = await this.fetchToken();
  }

  get(
    path: string,
    query: Query = {},
    headers: Readonly<Record<string, string>> = {},
  ): Promise<RestResponse> {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) search.set(name, String(value));
    const url = `${this.simulator.baseUrl}/v3${path}${search.size > 0 ? `?${search}` : ""}`;
    return sendRequest(url, { headers: { authorization: `Bearer ${this.token}`, ...headers } });
  }

  /** The records of all pages. */
  async walk<R>(path: string, query: Query = {}): Promise<R[]> {
    const found: R[] = [];
    for (let startAfter: string | null | undefined; startAfter !== null; ) {
      const { body } = await this.get(path, { ...query, startAfter });
      found.push(...body.content);
      startAfter = body.nextId ?? null;
    }
    return found;
  }

  get now(): number {
    return this.clock.now();
  }
}

export async function sendRequest(url: string, init?: RequestInit): Promise<RestResponse> {
  const response = await fetch(url, init);
  const bytes = Buffer.from(await response.arrayBuffer());
  return {
    status: response.status,
    headers: response.headers,
    bytes,
    text: bytes.toString(),
    get body() {
      return JSON.parse(bytes.toString());
    },
  };
}

/** Stops the simulator when the test ends. */
export async function startRestClient(options: SimulatorOptions = {}, start?: string): Promise<RestClient> {
  const client = await RestClient.start(options, { start });
  onTestFinished(() => client.simulator.stop());
  return client;
}

/** The same for all tests of a file. */
export async function startSharedRestClient(options: SimulatorOptions = {}): Promise<RestClient> {
  const client = await RestClient.start(options);
  afterAll(() => client.simulator.stop());
  return client;
}

export const iso = (ms: number) => new Date(ms).toISOString();
export const DAY_MS = 86_400_000;
export const UNKNOWN_UUID = "00000000-0000-4000-8000-000000000000";
