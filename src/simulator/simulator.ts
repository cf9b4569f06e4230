import { type Clock, systemClock } from "../runtime/clock.ts";
import { handleControlRequest, isControlRequest } from "./control-api.ts";
import { FaultController } from "./fault-controller.ts";
import type { ChangedResponse } from "./faults/http-faults.ts";
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
  /** `demo`: a dozen assets; `real`: as many as the real service; or explicit numbers. */
  size?: UniverseSize;
  /** The refresh period of the service. */
  refreshSeconds?: number;
  clock?: Clock;
  host?: string;
  /** 0: any free port. */
  port?: number;
  clientId?: string;
  clientSecret?: string;
  scopes?: readonly string[];
  tokenSeconds?: number;
  quirks?: Partial<Quirks>;
  /** The text of a fault script. */
  faults?: string;
  /** Called before a response that a fault has changed is sent: it tells what the fault hides. */
  onChanged?: (change: ChangedResponse) => void;
  /** Interval of JSON PINGs. A client that has not replied by the next PING is disconnected. 0: no PINGs. */
  pingSeconds?: number;
  /** Maximum size of the cache of rendered pages. */
  cacheMegabytes?: number;
}

interface PrerenderOptions {
  readonly type: SimulatedIndexType;
  readonly id: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface Simulator {
  /** The REST address, which is also the audience of REST tokens. */
  readonly baseUrl: string;
  /** The websocket address, which is also the audience of its tokens. */
  readonly wsUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The client secret and the newest token of each audience. */
  readonly secrets: readonly string[];
  /** The entities that the lookups serve. */
  readonly universe: Universe;
  /** Tells what REST serves at any time, without requests. */
  readonly oracle: Oracle;
  /** The log of all requests. */
  readonly requests: RequestLog;
  /** Replaces the fault script; an empty text ends all faults. Throws and changes nothing on a syntax error. */
  setFaults(script: string): void;
  /** How often each line of the script triggered. */
  readonly faultCounts: readonly FaultCount[];
  /** Sets the scopes of new tokens. Existing tokens keep their scopes. */
  grantScopes(scopes: readonly string[]): void;
  /** Revokes all tokens: requests with them get 401. */
  revokeTokens(): void;
  /** Replaces the client secret. The old one gets 401. */
  rotateSecret(secret: string): void;
  /** Renders the pages of a walk over the ticks of one index in advance, for benchmarks. Returns the number of records. */
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
  const tokenSettings = { clientId, clientSecret, scopes, tokenSeconds };
  const tokens = new Tokens(seed, quirks, tokenSettings, () => addresses);
  const requests = new RequestLog();
  const controls = {
    requests,
    setFaults: (script: string) => faults.setScript(script),
    get pongs(): PongSummary {
      return live.pongs.summary;
    },
    grantScopes(scopes: readonly string[]) {
      tokenSettings.scopes = scopes;
    },
    revokeTokens: () => tokens.revokeAll(),
    rotateSecret(secret: string) {
      tokenSettings.clientSecret = secret;
    },
  };
  const server = new SimulatorHttpServer(clock, requests, (request, remoteAddress) => {
    return isControlRequest(request)
      ? handleControlRequest(controls, request, remoteAddress)
      : handleServiceRequest(world, tokens, request);
  });
  server.isCompressing = quirks.compression === "gzip";
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
  const listen = async () => void (await server.listen(host, boundPort));
  const faults = new FaultController({
    ...{ seed, clock, tokens, server, live, listen },
    onChanged: options.onChanged,
  });
  faults.setScript(options.faults ?? "");
  const boundPort = await server.listen(host, port);
  const authority = `${host.includes(":") ? `[${host}]` : host}:${boundPort}`;
  addresses.rest = `http://${authority}`;
  addresses.websocket = `ws://${authority}${WEBSOCKET_PATH}`;

  return {
    ...controls,
    baseUrl: addresses.rest,
    wsUrl: addresses.websocket,
    clientId,
    get clientSecret() {
      return tokenSettings.clientSecret;
    },
    get secrets() {
      return tokens.secrets;
    },
    get faultCounts() {
      return faults.counts;
    },
    universe: world.universe,
    oracle: world.oracle,
    prerender: ({ type, id, ...range }) => world.indexTicks.prerender(type, id, range, clock.now()),
    async stop() {
      faults.endScript();
      await faults.waitForPort();
      await live.stop();
      await server.close();
    },
  };
}
