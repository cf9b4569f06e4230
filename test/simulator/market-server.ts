import { ApiServer } from "../../src/api-server/api-server.ts";
import type { Interceptor } from "../../src/api-server/interceptor.ts";
import type { Access, TokenAudience, Tokens } from "../../src/api-server/tokens.ts";
import { serviceScopes } from "../../src/model/streams.ts";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import { silentLog } from "../../src/runtime/log.ts";
import { hashNumbers } from "../../src/simulator/market/hash.ts";
import type { UniverseSize } from "../../src/simulator/market/universe.ts";
import { createMarketSource } from "../../src/simulator/market-source.ts";
import { MAX_UNREAD_BYTES } from "../../src/simulator/simulator.ts";
import { defaultQuirks, type Quirks } from "./quirks.ts";
import { createQuirkyWorld, type QuirkyWorld } from "./quirky-world.ts";

export interface MarketServerOptions {
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

/** The only client of the service. Changes apply to later tokens. */
type ClientSettings = Required<
  Pick<MarketServerOptions, "clientId" | "clientSecret" | "scopes" | "tokenSeconds">
>;

export interface MarketServer extends Pick<ApiServer, "baseUrl" | "wsUrl" | "close" | "listen" | "stop"> {
  readonly settings: ClientSettings;
  readonly tokens: Tokens;
  /** By audience: the newest token. */
  readonly newestTokens: ReadonlyMap<TokenAudience, string>;
  /** The data that it serves. */
  readonly world: QuirkyWorld;
}

/** The simulated service, as tests need it: with quirks, an interceptor, and all that can change while it runs. */
export async function startMarketServer(options: MarketServerOptions = {}): Promise<MarketServer> {
  const { seed = 1, size = "demo", refreshSeconds = 30, clock = systemClock, interceptor = {} } = options;
  const { clientId = "demo", clientSecret = "demo-secret", scopes = serviceScopes } = options;
  const { port = 0, tokenSeconds = 86_400, pingSeconds = 30 } = options;
  const quirks: Quirks = { ...defaultQuirks, ...options.quirks };
  const world = createQuirkyWorld({ seed, size, tickMs: refreshSeconds * 1000 }, quirks);
  const settings: ClientSettings = { clientId, clientSecret, scopes, tokenSeconds };
  const newestTokens = new Map<TokenAudience, string>();
  let tokenCount = 0;
  const access: Access = {
    isOpen: false,
    isSecretOf: (id, secret) => id === settings.clientId && secret === settings.clientSecret,
    grantOf: () => ({ scopes: settings.scopes, seconds: settings.tokenSeconds }),
    createToken(audience) {
      const token = createTokenText(seed, quirks, tokenCount++);
      newestTokens.set(audience, token);
      return token;
    },
  };
  const server = new ApiServer({
    ...{ access, clock, interceptor, pingSeconds, port, host: "127.0.0.1" },
    ...{ name: "the simulator", portSetting: "--port" },
    source: createMarketSource(world, clock, quirks),
    log: { ...silentLog, error: ({ error }) => process.stderr.write(`simulator: ${error}\n`) },
    maxUnreadBytes: MAX_UNREAD_BYTES,
  });
  await server.listen();
  return {
    ...{ baseUrl: server.baseUrl, wsUrl: server.wsUrl, tokens: server.tokens, settings, newestTokens, world },
    close: () => server.close(),
    listen: () => server.listen(),
    stop: () => server.stop(),
  };
}

function createTokenText(seed: number, quirks: Quirks, count: number): string {
  const words = Array.from({ length: 12 }, (_, word) => hashNumbers(seed, 71, count, word));
  const bytes = Buffer.from(Uint32Array.from(words).buffer);
  return quirks.awkwardTokens ? `+/${bytes.toString("base64")}=&a=` : bytes.toString("base64url");
}
