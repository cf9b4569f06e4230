import { ApiServer } from "../../src/api-server/api-server.ts";
import type { Interceptor } from "../../src/api-server/interceptor.ts";
import type { Access, TokenAudience } from "../../src/api-server/tokens.ts";
import { serviceScopes } from "../../src/model/streams.ts";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import { silentLog } from "../../src/runtime/log.ts";
import { hashNumbers } from "../../src/simulator/market/hash.ts";
import type { UniverseSize } from "../../src/simulator/market/universe.ts";
import { createMarketSource } from "../../src/simulator/market-source.ts";
import { MAX_UNREAD_BYTES } from "../../src/simulator/simulator.ts";
import type { ClientSettings, Fault, SimulatedService } from "./fault.ts";
import { type ChangedResponse, FaultInterceptor } from "./fault-interceptor.ts";
import { Oracle } from "./oracle.ts";
import { defaultQuirks, type Quirks } from "./quirks.ts";
import { createQuirkyWorld } from "./quirky-world.ts";
import { PongLog, RequestLog } from "./traffic-log.ts";

export interface SimulatorOptions extends Partial<ClientSettings> {
  readonly seed?: number;
  /** `demo`: a dozen assets; `real`: as many as the real service; or explicit numbers. */
  readonly size?: UniverseSize;
  /** The refresh period of the service. */
  readonly refreshSeconds?: number;
  readonly clock?: Clock;
  /** 0: any free port. */
  readonly port?: number;
  readonly quirks?: Partial<Quirks>;
  /** Interval of JSON PINGs. A client that has not replied by the next PING is disconnected. 0: no PINGs. */
  readonly pingSeconds?: number;
  readonly faults?: readonly Fault[];
  /** Called before a response that a fault has changed is sent: it tells what the fault hides. */
  readonly onChanged?: (change: ChangedResponse) => void;
}

export type Simulator = Awaited<ReturnType<typeof startSimulator>>;

/** A simulator that a test can steer and question: with quirks, faults, and all that can change while it runs. */
export async function startSimulator(options: SimulatorOptions = {}) {
  const { seed = 1, size = "demo", refreshSeconds = 30, clock = systemClock } = options;
  const { clientId = "demo", clientSecret = "demo-secret", scopes = serviceScopes } = options;
  const { port = 0, tokenSeconds = 86_400, pingSeconds = 30, faults = [], onChanged } = options;
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
  const faultInterceptor = new FaultInterceptor({ seed, clock, onChanged, service: () => service });
  const requests = new RequestLog();
  const pongs = new PongLog(clock);
  const server = new ApiServer({
    ...{ access, clock, pingSeconds, port, host: "127.0.0.1" },
    ...{ name: "the simulator", portSetting: "--port" },
    interceptor: logTraffic(faultInterceptor, requests, pongs, clock),
    source: createMarketSource(world, clock, quirks),
    log: { ...silentLog, error: ({ error }) => process.stderr.write(`simulator: ${error}\n`) },
    maxUnreadBytes: MAX_UNREAD_BYTES,
  });
  const service: SimulatedService = {
    ...{ server, settings, world },
    get secrets() {
      return [settings.clientSecret, ...newestTokens.values()];
    },
  };
  await server.listen();
  faultInterceptor.setFaults(faults);
  return {
    ...{ baseUrl: server.baseUrl, wsUrl: server.wsUrl, requests, pongs, clientId },
    get clientSecret() {
      return settings.clientSecret;
    },
    /** The client secret and the newest token of each audience. */
    get secrets() {
      return service.secrets;
    },
    /** How often each fault struck. */
    get faultCounts() {
      return faultInterceptor.counts;
    },
    /** The entities that the lookups serve. */
    universe: world.universe,
    /** Tells what REST serves at any time, without requests. */
    oracle: new Oracle(world),
    /** Replaces all faults. */
    setFaults: (...replaced: readonly Fault[]) => faultInterceptor.setFaults(replaced),
    /** Sets the scopes of new tokens. Existing tokens keep their scopes. */
    grantScopes(granted: readonly string[]): void {
      settings.scopes = granted;
    },
    /** Revokes all tokens: requests with them get 401. */
    revokeTokens: () => server.tokens.revokeAll(),
    /** Replaces the client secret. The old one gets 401. */
    rotateSecret(secret: string): void {
      settings.clientSecret = secret;
    },
    async stop(): Promise<void> {
      faultInterceptor.endFaults();
      await faultInterceptor.waitForPort();
      await server.stop();
    },
  };
}

function createTokenText(seed: number, quirks: Quirks, count: number): string {
  const words = Array.from({ length: 12 }, (_, word) => hashNumbers(seed, 71, count, word));
  const bytes = Buffer.from(Uint32Array.from(words).buffer);
  return quirks.awkwardTokens ? `+/${bytes.toString("base64")}=&a=` : bytes.toString("base64url");
}

/** Logs what the server receives and sends, on both sides of the faults. */
function logTraffic(
  faulty: FaultInterceptor,
  requests: RequestLog,
  pongs: PongLog,
  clock: Clock,
): Interceptor {
  return {
    respond(exchange, proceed) {
      const { request, rawResponse } = exchange;
      const { method, target, nowMs } = request;
      const logged = requests.add({ method, target, status: 0, at: nowMs });
      const logStatus = () => {
        if (rawResponse.headersSent) logged.status = rawResponse.statusCode;
      };
      rawResponse.once("finish", logStatus).once("close", logStatus);
      faulty.respond(exchange, proceed);
    },
    upgrade(request, socket, proceed) {
      const status = faulty.upgrade(request, socket, proceed);
      const [target = ""] = (request.url ?? "").split("?", 1);
      requests.add({ method: "GET", target, status, at: clock.now() });
    },
    receive(session, message, proceed) {
      if (message.event === "PONG") pongs.answered(session, message.requestId);
      faulty.receive(session, message, proceed);
    },
    send(session, messages, proceed) {
      pongs.sent(session, messages);
      faulty.send(session, messages, proceed);
    },
  };
}
