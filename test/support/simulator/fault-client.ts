import { type Agent, type IncomingHttpHeaders, request } from "node:http";
import type { Simulator, SimulatorOptions } from "../../simulator/simulator.ts";
import { findFreePort } from "../free-port.ts";
import type { ManualClock } from "../manual-clock.ts";
import { startServer } from "./server-under-test.ts";

/** The result of one request, including a broken transfer. */
export interface RequestOutcome {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
  text: string;
  /** Whether the body is complete according to its framing. */
  isWhole: boolean;
  /** The error code of a broken connection. */
  error?: string;
}

export interface Page {
  content: Record<string, string>[];
  nextId?: string | null;
}

export interface RequestOptions {
  headers?: Record<string, string>;
  agent?: Agent;
  /** Holds the manual clock during the request, and aborts after this time. */
  deadlineMs?: number;
}

/** A plain HTTP client of the simulator, independent of the client of the product. */
export class FaultClient {
  readonly clock: ManualClock;
  readonly simulator: Simulator;
  token = "";

  private constructor(simulator: Simulator, clock: ManualClock) {
    this.simulator = simulator;
    this.clock = clock;
  }

  static async start(options: SimulatorOptions = {}): Promise<FaultClient> {
    // On a port of its own: it stays free while a fault stops the server.
    const server = await startServer({ port: await findFreePort(), ...options }, { isLive: true });
    const client = new FaultClient(server.simulator, server.clock);
    client.token = await client.fetchToken();
    return client;
  }

  async fetchToken(audience = this.simulator.baseUrl): Promise<string> {
    return JSON.parse((await this.requestToken(audience)).text).access_token;
  }

  requestToken(audience = this.simulator.baseUrl, options: RequestOptions = {}): Promise<RequestOutcome> {
    const { clientId, clientSecret } = this.simulator;
    const body = {
      grant_type: "client_credentials",
      client_id: clientId,
      client_secret: clientSecret,
      audience,
    };
    return this.send("POST", "/oauth/token", { ...options, body: JSON.stringify(body) });
  }

  get(path: string, options: RequestOptions = {}): Promise<RequestOutcome> {
    return this.send("GET", path, options);
  }

  async getPage(path: string): Promise<Page> {
    return JSON.parse((await this.get(path)).text);
  }

  /** The path of a page of one index (default: the first asset). */
  pagePath(size: number, startAfter?: string | null, indexId = this.firstAssetId): string {
    const cursor = startAfter ? `&startAfter=${encodeURIComponent(startAfter)}` : "";
    return `/index-ticker?indexType=GWA&indexId=${indexId}&size=${size}&timestamp=2026-03-01T12:00:00Z${cursor}`;
  }

  get firstAssetId(): string {
    return this.simulator.universe.assets[0]?.id ?? "";
  }

  send(
    method: string,
    path: string,
    options: RequestOptions & { body?: string } = {},
  ): Promise<RequestOutcome> {
    const { promise, resolve } = Promise.withResolvers<RequestOutcome>();
    const chunks: Buffer[] = [];
    const outcome = { status: 0, headers: {} as IncomingHttpHeaders, isWhole: false };
    const finish = (error?: NodeJS.ErrnoException) => {
      const body = Buffer.concat(chunks);
      resolve({
        ...outcome,
        body,
        text: body.toString(),
        ...(error ? { error: error.code ?? error.message } : {}),
      });
    };
    const headers = {
      authorization: `Bearer ${this.token}`,
      "content-type": "application/json",
      ...options.headers,
    };
    const clientRequest = request(
      `${this.simulator.baseUrl}/v3${path}`,
      { method, headers, agent: options.agent ?? false },
      (response) => {
        outcome.status = response.statusCode ?? 0;
        outcome.headers = response.headers;
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", finish);
        response.on("end", () => {
          outcome.isWhole = response.complete;
          finish();
        });
      },
    );
    clientRequest.on("error", finish);
    if (options.deadlineMs !== undefined) {
      const cancel = this.clock.after(options.deadlineMs, () =>
        clientRequest.destroy(new Error("deadline exceeded")),
      );
      const release = this.clock.beginWork();
      clientRequest.on("close", () => {
        cancel();
        release();
      });
    }
    clientRequest.end(options.body);
    return promise;
  }

  faultCounts(): number[] {
    return this.simulator.faultCounts.map(({ struck }) => struck);
  }
}
