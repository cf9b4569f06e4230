import { type Clock, systemClock } from "../runtime/clock.ts";
import { BarHistory } from "./bar-history.ts";
import { HistoryPages } from "./history-pages.ts";
import { type Send, sendWell } from "./http-answer.ts";
import { HttpServer } from "./http-server.ts";
import { IndexFigures } from "./index-figures.ts";
import { IndexTable } from "./index-series.ts";
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
  /** Replaces the fault script; an empty text ends all faults. */
  setFaults(script: string): void;
  /** The scopes of tokens issued from now on: a token keeps those that it was issued with. */
  grantScopes(scopes: readonly string[]): void;
  /** Every token issued so far is answered with 401. */
  revokeTokens(): void;
  /** The old client secret is refused from now on. */
  rotateSecret(secret: string): void;
  stop(): Promise<void>;
}

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
  server.send = senderFor(options.faults ?? "");
  const bound = await server.listen(host, port);
  addresses.rest = `http://${host}:${bound}`;
  addresses.websocket = `ws://${host}:${bound}/v3/stream`;

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
    setFaults(script) {
      server.send = senderFor(script);
    },
    grantScopes(granted) {
      tokens.terms.scopes = granted;
    },
    revokeTokens: () => tokens.revokeAll(),
    rotateSecret(secret) {
      tokens.terms.clientSecret = secret;
    },
    stop: () => server.close(),
  };
}

/** The seam for the fault script. */
function senderFor(script: string): Send {
  if (script.trim() !== "") throw new Error("fault scripts are not understood yet");
  return sendWell;
}
