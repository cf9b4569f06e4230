import { ApiServer } from "../api-server/api-server.ts";
import type { Interceptor } from "../api-server/interceptor.ts";
import type { Access, TokenAudience, Tokens } from "../api-server/tokens.ts";
import { serviceScopes } from "../model/streams.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import { silentLog } from "../runtime/log.ts";
import { hashNumbers } from "./market/hash.ts";
import { defaultQuirks, type Quirks } from "./market/quirks.ts";
import type { UniverseSize } from "./market/universe.ts";
import { createMarketSource } from "./market-source.ts";
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

/** The only client of the service. Changes apply to later tokens. */
type ClientSettings = Required<
  Pick<SimulatorOptions, "clientId" | "clientSecret" | "scopes" | "tokenSeconds">
>;

export interface Simulator extends Pick<ApiServer, "baseUrl" | "wsUrl" | "close" | "listen" | "stop"> {
  readonly settings: ClientSettings;
  readonly tokens: Tokens;
  /** By audience: the newest token. */
  readonly newestTokens: ReadonlyMap<TokenAudience, string>;
  /** The data that it serves. */
  readonly world: World;
}

/** All ticks of a refresh of the real size are sent at once. */
const MAX_UNREAD_BYTES = 128 * 2 ** 20;

export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const { seed = 1, size = "demo", refreshSeconds = 30, clock = systemClock, interceptor = {} } = options;
  const { clientId = "demo", clientSecret = "demo-secret", scopes = serviceScopes } = options;
  const { port = 0, tokenSeconds = 86_400, pingSeconds = 30 } = options;
  const quirks: Quirks = { ...defaultQuirks, ...options.quirks };
  const world = createWorld({ seed, size, tickMs: refreshSeconds * 1000, quirks });
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
    source: createMarketSource(world, clock),
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
