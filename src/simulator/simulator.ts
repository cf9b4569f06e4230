import { type Clock, systemClock } from "../runtime/clock.ts";
import type { Interceptor } from "./interceptor.ts";
import { defaultQuirks, type Quirks } from "./market/quirks.ts";
import type { UniverseSize } from "./market/universe.ts";
import { SimulatorHttpServer } from "./rest/http-server.ts";
import { allScopes, Tokens } from "./rest/tokens.ts";
import { handleServiceRequest } from "./routes.ts";
import { LiveServer } from "./websocket/server.ts";
import { createWorld, type World } from "./world.ts";

export interface SimulatorOptions {
  seed?: number;
  /** `demo`: a dozen assets; `real`: as many as the real service; or explicit numbers. */
  size?: UniverseSize;
  /** The refresh period of the service. */
  refreshSeconds?: number;
  clock?: Clock;
  /** 0: any free port. */
  port?: number;
  clientId?: string;
  clientSecret?: string;
  scopes?: readonly string[];
  tokenSeconds?: number;
  quirks?: Partial<Quirks>;
  /** Interval of JSON PINGs. A client that has not replied by the next PING is disconnected. 0: no PINGs. */
  pingSeconds?: number;
  interceptor?: Interceptor;
}

export interface Simulator {
  /** The REST address, which is also the audience of REST tokens. */
  readonly baseUrl: string;
  /** The websocket address, which is also the audience of its tokens. */
  readonly wsUrl: string;
  readonly tokens: Tokens;
  /** The data that it serves. */
  readonly world: World;
  /** Closes the port and all connections. */
  close(): Promise<void>;
  /** Opens the same port again. */
  listen(): Promise<void>;
  stop(): Promise<void>;
}

const HOST = "127.0.0.1";
const WEBSOCKET_PATH = "/v3/stream";

export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const { seed = 1, size = "demo", refreshSeconds = 30, clock = systemClock, interceptor = {} } = options;
  const { clientId = "demo", clientSecret = "demo-secret", scopes = allScopes } = options;
  const { port = 0, tokenSeconds = 86_400, pingSeconds = 30 } = options;
  const quirks: Quirks = { ...defaultQuirks, ...options.quirks };
  const world = createWorld({ seed, size, tickMs: refreshSeconds * 1000, quirks });

  const addresses = { rest: "", websocket: "" };
  const settings = { clientId, clientSecret, scopes, tokenSeconds };
  const tokens = new Tokens(seed, quirks, settings, () => addresses);
  const server = new SimulatorHttpServer(clock, interceptor.respond?.bind(interceptor), (request) =>
    handleServiceRequest(world, tokens, request),
  );
  server.isCompressing = quirks.compression === "gzip";
  const live = new LiveServer({
    ...{ clock, world, interceptor, pingSeconds },
    path: WEBSOCKET_PATH,
    scopesOf: (token) => tokens.scopesOf(token, "websocket", clock.now()),
  });
  server.onUpgrade = (request, socket, head) => live.upgrade(request, socket, head);
  const boundPort = await server.listen(HOST, port);
  addresses.rest = `http://${HOST}:${boundPort}`;
  addresses.websocket = `ws://${HOST}:${boundPort}${WEBSOCKET_PATH}`;

  return {
    baseUrl: addresses.rest,
    wsUrl: addresses.websocket,
    tokens,
    world,
    async close() {
      live.dropAll();
      await server.close();
    },
    async listen() {
      await server.listen(HOST, boundPort);
    },
    async stop() {
      await live.stop();
      await server.close();
    },
  };
}
