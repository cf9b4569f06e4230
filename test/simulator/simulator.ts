import type { Interceptor } from "../../src/api-server/interceptor.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { Universe } from "../../src/simulator/market/universe.ts";
import type { Fault } from "./fault.ts";
import { type ChangedResponse, FaultInterceptor } from "./fault-interceptor.ts";
import { type MarketServer, type MarketServerOptions, startMarketServer } from "./market-server.ts";
import { Oracle } from "./oracle.ts";
import { PongLog, RequestLog } from "./traffic-log.ts";

export interface SimulatorOptions extends Omit<MarketServerOptions, "interceptor"> {
  faults?: readonly Fault[];
  /** Called before a response that a fault has changed is sent: it tells what the fault hides. */
  onChanged?: (change: ChangedResponse) => void;
}

/** A simulator that a test can steer and question. */
export interface Simulator extends Pick<MarketServer, "baseUrl" | "wsUrl" | "stop"> {
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
  readonly pongs: PongLog;
  /** Replaces all faults. */
  setFaults(...faults: readonly Fault[]): void;
  /** How often each fault struck. */
  readonly faultCounts: FaultInterceptor["counts"];
  /** Sets the scopes of new tokens. Existing tokens keep their scopes. */
  grantScopes(scopes: readonly string[]): void;
  /** Revokes all tokens: requests with them get 401. */
  revokeTokens(): void;
  /** Replaces the client secret. The old one gets 401. */
  rotateSecret(secret: string): void;
}

export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const { faults = [], onChanged, ...plain } = options;
  const { seed = 1, clock = systemClock } = plain;
  const requests = new RequestLog();
  const pongs = new PongLog(clock);
  const faultInterceptor = new FaultInterceptor({ seed, clock, onChanged, simulator: () => simulator });
  const interceptor: Interceptor = {
    respond(exchange, proceed) {
      const { request, rawResponse } = exchange;
      const { method, target, nowMs } = request;
      const logged = requests.add({ method, target, status: 0, at: nowMs });
      const logStatus = () => {
        if (rawResponse.headersSent) logged.status = rawResponse.statusCode;
      };
      rawResponse.once("finish", logStatus).once("close", logStatus);
      faultInterceptor.respond(exchange, proceed);
    },
    upgrade(request, socket, proceed) {
      const status = faultInterceptor.upgrade(request, socket, proceed);
      const [target = ""] = (request.url ?? "").split("?", 1);
      requests.add({ method: "GET", target, status, at: clock.now() });
    },
    receive(session, message, proceed) {
      if (message.event === "PONG") pongs.answered(session, message.requestId);
      faultInterceptor.receive(session, message, proceed);
    },
    send(session, messages, proceed) {
      pongs.sent(session, messages);
      faultInterceptor.send(session, messages, proceed);
    },
  };
  const simulator = await startMarketServer({ ...plain, interceptor });
  faultInterceptor.setFaults(faults);
  const { tokens, settings, newestTokens, world, baseUrl, wsUrl } = simulator;
  return {
    ...{ baseUrl, wsUrl, requests, pongs },
    clientId: settings.clientId,
    get clientSecret() {
      return settings.clientSecret;
    },
    get secrets() {
      return [settings.clientSecret, ...newestTokens.values()];
    },
    get faultCounts() {
      return faultInterceptor.counts;
    },
    universe: world.universe,
    oracle: new Oracle(world),
    setFaults: (...replaced) => faultInterceptor.setFaults(replaced),
    grantScopes(scopes) {
      settings.scopes = scopes;
    },
    revokeTokens: () => tokens.revokeAll(),
    rotateSecret(secret) {
      settings.clientSecret = secret;
    },
    async stop() {
      faultInterceptor.endFaults();
      await faultInterceptor.waitForPort();
      await simulator.stop();
    },
  };
}
