import { type Clock, systemClock } from "../runtime/clock.ts";
import { BarHistory } from "./bar-history.ts";
import type { StruckLine } from "./fault-script.ts";
import { FaultSwitchboard } from "./fault-switchboard.ts";
import { HistoryPages } from "./history-pages.ts";
import { HttpServer } from "./http-server.ts";
import { IndexFigures } from "./index-figures.ts";
import { IndexTable } from "./index-series.ts";
import { LiveServer } from "./live-server.ts";
import { LiveDirectory } from "./live-subscriptions.ts";
import { liveMessages } from "./live-tick-messages.ts";
import { Lookups } from "./lookups.ts";
import { PageCache } from "./page-cache.ts";
import { PriceModel } from "./price-model.ts";
import { type Quirks, usualQuirks } from "./quirks.ts";
import { RecordIds } from "./record-ids.ts";
import { RequestLog } from "./request-log.ts";
import { answerService } from "./routes.ts";
import { TickCalendar } from "./tick-calendar.ts";
import { TickHistory } from "./tick-history.ts";
import { allScopes, Tokens } from "./tokens.ts";
import { Truth } from "./truth.ts";
import { makeUniverse, type Universe, type UniverseSize } from "./universe.ts";
import { WireWriter } from "./wire.ts";

export interface SimulatorOptions {
  seed?: number;
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
}

export interface Simulator {
  /** The REST address, which is also the audience of REST tokens. */
  readonly baseUrl: string;
  /** The websocket address, which is also the audience of its tokens. */
  readonly wsUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly universe: Universe;
  readonly truth: Truth;
  readonly requests: RequestLog;
  /** The websocket side: how many clients there are, and bursts for benchmarks. */
  readonly live: Pick<LiveServer, "clients" | "publish">;
  /** Replaces the fault script; an empty text ends all faults. Throws, and changes nothing, when a line cannot be read. */
  setFaults(script: string): void;
  /** How often each line of the script struck. */
  readonly struck: readonly StruckLine[];
  /** The scopes of tokens issued from now on: a token keeps those that it was issued with. */
  grantScopes(scopes: readonly string[]): void;
  /** Every token issued so far is answered with 401. */
  revokeTokens(): void;
  /** The old client secret is refused from now on. */
  rotateSecret(secret: string): void;
  stop(): Promise<void>;
}

const STREAM_PATH = "/v3/stream";
const CACHED_PAGE_BYTES = 192 * 2 ** 20;

export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const { seed = 1, size = "demo", refreshSeconds = 30, clock = systemClock } = options;
  const { host = "127.0.0.1", port = 0, clientId = "demo", clientSecret = "demo-secret" } = options;
  const { scopes = allScopes, tokenSeconds = 86_400 } = options;
  const quirks: Quirks = { ...usualQuirks, ...options.quirks };
  const tickMs = refreshSeconds * 1000;

  const universe = makeUniverse(seed, size, quirks.ids);
  const model = new PriceModel(
    seed,
    tickMs,
    universe.assets.map(({ path }) => path),
  );
  const figures = new IndexFigures(model, seed);
  const calendar = new TickCalendar(seed, tickMs, quirks);
  const ids = new RecordIds(seed, quirks.ids);
  const wire = new WireWriter(quirks);
  const table = new IndexTable(universe);
  const ticks = new TickHistory(calendar, figures, ids, quirks, wire);
  const bars = new BarHistory(calendar, figures, ids, quirks, wire);
  const pages = { table, ids, quirks, wire, cache: new PageCache(CACHED_PAGE_BYTES) };

  const addresses = { rest: "", websocket: "" };
  const tokens = new Tokens(seed, quirks, { clientId, clientSecret, scopes, tokenSeconds }, () => addresses);
  const desks = {
    tokens,
    lookups: new Lookups(universe, quirks, wire),
    indexTicks: new HistoryPages(ticks, "read:index-ticker", pages),
    dailyBars: new HistoryPages(bars, "read:ohlcv", pages),
  };
  const requests = new RequestLog();
  const server = new HttpServer(clock, requests, (question) => answerService(desks, question));
  const live = new LiveServer({
    clock,
    source: liveMessages({ calendar, ticks, exchange: () => undefined }),
    directory: new LiveDirectory(universe, table),
    path: STREAM_PATH,
    scopesOf: (token) => tokens.scopesOf(token, "websocket", clock.now()),
    log: (target, status) => requests.add({ method: "GET", target, status, at: clock.now() }),
    pingSeconds: options.pingSeconds ?? 30,
  });
  server.onUpgrade = (request, socket, head) => live.upgrade(request, socket, head);
  const listen = async () => void (await server.listen(host, bound));
  const faults = new FaultSwitchboard({ seed, clock, refreshSeconds, tokens, server, live, listen });
  faults.set(options.faults ?? "");
  const bound = await server.listen(host, port);
  addresses.rest = `http://${host}:${bound}`;
  addresses.websocket = `ws://${host}:${bound}${STREAM_PATH}`;

  return {
    baseUrl: addresses.rest,
    wsUrl: addresses.websocket,
    clientId,
    get clientSecret() {
      return tokens.terms.clientSecret;
    },
    universe,
    truth: new Truth({ table, calendar, ticks, bars }),
    requests,
    live,
    setFaults: (script) => faults.set(script),
    get struck() {
      return faults.struck;
    },
    grantScopes(granted) {
      tokens.terms.scopes = granted;
    },
    revokeTokens: () => tokens.revokeAll(),
    rotateSecret(secret) {
      tokens.terms.clientSecret = secret;
    },
    async stop() {
      faults.end();
      await faults.settled();
      await live.stop();
      await server.close();
    },
  };
}
