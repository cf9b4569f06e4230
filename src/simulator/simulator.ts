import { type Clock, systemClock } from "../runtime/clock.ts";
import { handleControlRequest, isControlRequest } from "./control-api.ts";
import { FaultController } from "./fault-controller.ts";
import type { FaultCount } from "./faults/script.ts";
import { createLiveMessageSource } from "./live-messages.ts";
import type { SimulatedIndexType } from "./market/indexes.ts";
import { defaultQuirks, type Quirks } from "./market/quirks.ts";
import type { Universe, UniverseSize } from "./market/universe.ts";
import type { Oracle } from "./oracle.ts";
import { SimulatorHttpServer } from "./rest/http-server.ts";
import { RequestLog } from "./rest/request-log.ts";
import { allScopes, Tokens } from "./rest/tokens.ts";
import { handleServiceRequest } from "./routes.ts";
import type { PongSummary } from "./websocket/pong-log.ts";
import { LiveServer } from "./websocket/server.ts";
import { SubscriptionDirectory } from "./websocket/subscriptions.ts";
import { createWorld } from "./world.ts";

export interface SimulatorOptions {
  seed?: number;
  /** A dozen assets, or as many as the real service has, or these. */
  size?: UniverseSize;
  /** The service's cadence. */
  refreshSeconds?: number;
  clock?: Clock;
  host?: string;
  /** 0: any free one. */
  port?: number;
  clientId?: string;
  clientSecret?: string;
  scopes?: readonly string[];
  tokenSeconds?: number;
  quirks?: Partial<Quirks>;
  /** The text of a fault script. */
  faults?: string;
  /** How often websocket clients get a JSON PING; who has not answered by the next one is cut off. 0: never. */
  pingSeconds?: number;
  /** Room for rendered pages. */
  cacheMegabytes?: number;
}

export interface PrerenderOptions {
  /** Index ticks unless told. */
  readonly stream?: "index-ticker" | "ohlcv";
  readonly type: SimulatedIndexType;
  readonly id: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly pageSize?: number;
}

export interface Simulator {
  /** The REST address, which is also the audience of REST tokens. */
  readonly baseUrl: string;
  /** The websocket address, which is also the audience of its tokens. */
  readonly wsUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** What the lookups serve. */
  readonly universe: Universe;
  /** What REST serves at any moment, without asking. */
  readonly oracle: Oracle;
  /** What was asked. */
  readonly requests: RequestLog;
  /** The websocket side: how many clients there are, and bursts for benchmarks. */
  readonly live: Pick<LiveServer, "clients" | "publish" | "prepareBurst">;
  /** Replaces the fault script; an empty text ends all faults. Throws, and changes nothing, when a line cannot be read. */
  setFaults(script: string): void;
  /** How often each line of the script struck. */
  readonly faultCounts: readonly FaultCount[];
  /** The scopes of tokens issued from now on: a token keeps those that it was issued with. */
  grantScopes(scopes: readonly string[]): void;
  /** Every token issued so far is answered with 401. */
  revokeTokens(): void;
  /** The old client secret is refused from now on. */
  rotateSecret(secret: string): void;
  /** Renders the pages of a walk back over one index beforehand, for benchmarks; says how many rows they hold. */
  prerender(range: PrerenderOptions): number;
  stop(): Promise<void>;
}

const WEBSOCKET_PATH = "/v3/stream";

export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const { seed = 1, size = "demo", refreshSeconds = 30, clock = systemClock, cacheMegabytes = 96 } = options;
  const { host = "127.0.0.1", port = 0, clientId = "demo", clientSecret = "demo-secret" } = options;
  const { scopes = allScopes, tokenSeconds = 86_400 } = options;
  const quirks: Quirks = { ...defaultQuirks, ...options.quirks };
  const tickMs = refreshSeconds * 1000;
  const world = createWorld({ seed, size, tickMs, quirks, cacheBytes: cacheMegabytes * 2 ** 20 });

  const addresses = { rest: "", websocket: "" };
  const terms = { clientId, clientSecret, scopes, tokenSeconds };
  const tokens = new Tokens(seed, quirks, terms, () => addresses);
  const requests = new RequestLog();
  const controls = {
    requests,
    setFaults: (script: string) => faults.setScript(script),
    get faultCounts(): readonly FaultCount[] {
      return faults.counts;
    },
    get pongs(): PongSummary {
      return live.pongs.summary;
    },
    grantScopes(granted: readonly string[]) {
      terms.scopes = granted;
    },
    revokeTokens: () => tokens.revokeAll(),
    rotateSecret(secret: string) {
      terms.clientSecret = secret;
    },
  };
  const server = new SimulatorHttpServer(clock, requests, (question, remoteAddress) => {
    return isControlRequest(question)
      ? handleControlRequest(controls, question, remoteAddress)
      : handleServiceRequest(world, tokens, question);
  });
  const live = new LiveServer({
    clock,
    source: createLiveMessageSource(world),
    directory: new SubscriptionDirectory(world.universe, world.table),
    path: WEBSOCKET_PATH,
    scopesOf: (token) => tokens.scopesOf(token, "websocket", clock.now()),
    logAttempt: (target, status) => requests.add({ method: "GET", target, status, at: clock.now() }),
    pingSeconds: options.pingSeconds ?? 30,
  });
  server.onUpgrade = (request, socket, head) => live.upgrade(request, socket, head);
  const listen = async () => void (await server.listen(host, bound));
  const faults = new FaultController({ seed, clock, refreshSeconds, tokens, server, live, listen });
  faults.setScript(options.faults ?? "");
  const bound = await server.listen(host, port);
  const authority = `${host.includes(":") ? `[${host}]` : host}:${bound}`;
  addresses.rest = `http://${authority}`;
  addresses.websocket = `ws://${authority}${WEBSOCKET_PATH}`;

  return {
    ...controls,
    baseUrl: addresses.rest,
    wsUrl: addresses.websocket,
    clientId,
    get clientSecret() {
      return terms.clientSecret;
    },
    get faultCounts() {
      return faults.counts;
    },
    universe: world.universe,
    oracle: world.oracle,
    live,
    prerender({ stream = "index-ticker", type, id, fromMs, toMs, pageSize = 2000 }) {
      const pages = stream === "ohlcv" ? world.dailyBars : world.indexTicks;
      return pages.prerender(type, id, { fromMs, toMs }, pageSize, clock.now());
    },
    async stop() {
      faults.endScript();
      await faults.waitForPort();
      await live.stop();
      await server.close();
    },
  };
}
