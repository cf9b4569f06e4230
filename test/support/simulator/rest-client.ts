import { afterAll, onTestFinished } from "vitest";
import type { Simulator, SimulatorOptions } from "../../simulator/simulator.ts";
import type { ManualClock } from "../manual-clock.ts";
import { startServer } from "./server-under-test.ts";

export interface RestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  readonly body: any;
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Sends requests to the simulator over real HTTP. */
export class RestClient {
  readonly simulator: Simulator;
  readonly clock: ManualClock;
  #token = "";

  constructor(simulator: Simulator, clock: ManualClock) {
    this.simulator = simulator;
    this.clock = clock;
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

  async signIn(): Promise<void> {
    const { body } = await this.requestToken();
    this.#token = body.access_token;
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
    return sendRequest(url, { headers: { authorization: `Bearer ${this.#token}`, ...headers } });
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
  const text = await response.text();
  const body = response.headers.get("content-type") === "application/json" ? JSON.parse(text) : undefined;
  return { status: response.status, headers: response.headers, text, body };
}

/** Starts a simulator on a manual clock, and a client with a token. Stops it when the test ends. */
export async function startRestClient(options: SimulatorOptions = {}, start?: string): Promise<RestClient> {
  const client = await startClient(options, start);
  onTestFinished(() => client.simulator.stop());
  return client;
}

/** The same for all tests of a file. */
export async function startSharedRestClient(options: SimulatorOptions = {}): Promise<RestClient> {
  const client = await startClient(options);
  afterAll(() => client.simulator.stop());
  return client;
}

async function startClient(options: SimulatorOptions, start?: string): Promise<RestClient> {
  const { simulator, clock } = await startServer(options, { start });
  const client = new RestClient(simulator, clock);
  await client.signIn();
  return client;
}

export const iso = (ms: number) => new Date(ms).toISOString();
export const DAY_MS = 86_400_000;
export const UNKNOWN_UUID = "00000000-0000-4000-8000-000000000000";
