import { INTRADAY_DAYS } from "../model/streams.ts";
import {
  address,
  duration,
  kinds,
  lxIds,
  type Option,
  optionalText,
  retention,
  schedule,
  selector,
  text,
  texts,
  webAddress,
  wholeNumber,
} from "./option-types.ts";

/** Settings that may be `false`: that stream is not synced. */
export interface Switchable<T> {
  readonly switchable: T;
}

function switchable<T>(options: T): Switchable<T> {
  return { switchable: options };
}

/**
 * Every setting there is, once: the loader, the flags, the environment, the help and the types all come from here.
 */
export const optionTable = {
  service: {
    baseUrl: address(
      {
        env: "MDS_BASE_URL",
        flag: "--base-url <url>",
        help: "the REST address, without /v3; also the REST token's audience",
      },
      { secure: "https:", plain: "http:" },
    ),
    authUrl: address(
      {
        env: "MDS_AUTH_URL",
        flag: "--auth-url <url>",
        help: "where tokens are asked for, without /v3; default: baseUrl",
      },
      { secure: "https:", plain: "http:" },
    ),
    wsUrl: address(
      {
        env: "MDS_WS_URL",
        flag: "--ws-url <url>",
        help: "the websocket address; also the websocket token's audience",
      },
      { secure: "wss:", plain: "ws:" },
    ),
    clientId: optionalText({
      env: "MDS_CLIENT_ID",
      flag: "--client-id <id>",
      help: "the client id that the service issued",
    }),
    clientSecretFile: optionalText({
      env: "MDS_CLIENT_SECRET_FILE",
      flag: "--client-secret-file <file>",
      help: "the file that holds the client secret (or the secret itself in MDS_CLIENT_SECRET); the secret never stands here",
    }),
    refreshSeconds: wholeNumber({ help: "the service's intraday cadence, in seconds" }, 30, 1, 3600),
    lxIndexIds: lxIds({ help: "ids of BLX, ELX and XRPLX; learned from the service when left out" }),
    concurrency: wholeNumber({ flag: "--concurrency <n>", help: "requests in flight, at most" }, 8, 1, 64),
    maxRequestsPerSecond: wholeNumber({ help: "a ceiling on the request rate; 0: adaptive" }, 0, 0, 10_000),
  },
  warehouse: {
    path: text(
      { env: "MDS_WAREHOUSE", flag: "--warehouse <file>", help: "the SQLite file" },
      "data/mds.sqlite",
    ),
  },
  sync: {
    lookups: switchable({
      every: duration({ help: "how often assets, markets and exchanges are looked up" }, "1h", "1m"),
    }),
    ohlcv: switchable({
      GWA: selector({ help: "daily bars of assets, in USD" }, { kind: "all" }, "assets"),
      MWA: selector({ help: "daily bars of market pairs" }, { kind: "all" }, "pairs"),
      LX: selector({ help: "daily bars of the liquid indices" }, { kind: "all" }, "indices"),
    }),
    intraday: switchable({
      GWA: selector({ help: "intraday ticks of assets, in USD" }, { kind: "top", count: 50 }, "assets"),
      MWA: selector({ help: "intraday ticks of market pairs" }, { kind: "none" }, "pairs"),
      LX: selector({ help: "intraday ticks of the liquid indices" }, { kind: "all" }, "indices"),
      days: wholeNumber(
        { help: `how far back; the service keeps ${INTRADAY_DAYS} days` },
        INTRADAY_DAYS,
        1,
        INTRADAY_DAYS,
      ),
    }),
    exchangeTickers: switchable({
      exchanges: selector({ help: "exchanges whose tickers are followed" }, { kind: "all" }, "exchanges"),
      markets: selector({ help: "markets whose tickers are followed" }, { kind: "top", count: 50 }, "pairs"),
    }),
    marketCap: switchable({
      every: duration(
        { help: "how often the ranking is taken; the service renews it within 5 minutes" },
        "5m",
        "30s",
      ),
    }),
    derivatives: switchable({
      exchanges: selector({ help: "exchanges whose derivatives are followed" }, { kind: "all" }, "exchanges"),
      types: kinds({ help: "kinds of derivatives" }),
      every: duration({ help: "how often derivative tickers are taken" }, "1m", "10s"),
    }),
  },
  retention: {
    exchangeTicks: retention({
      help: "how long exchange ticks are kept; pruned ranges become `lost`, reason `retention`",
    }),
    derivativeTicks: retention({ help: "how long derivative ticks are kept" }),
  },
  schedule: {
    nightly: schedule({ help: "the nightly backfill and audit: cron, UTC" }, "10 0 * * *"),
    export: schedule({ help: "the Parquet export: cron, UTC; empty: never" }, ""),
  },
  http: {
    host: text(
      { env: "MDS_HTTP_HOST", flag: "--http-host <host>", help: "where the dashboard and metrics listen" },
      "127.0.0.1",
    ),
    port: wholeNumber(
      { env: "MDS_HTTP_PORT", flag: "--http-port <port>", help: "0: any free port" },
      9464,
      0,
      65_535,
    ),
    allowedHosts: texts({ help: "names accepted in the Host header beside localhost and IP literals" }),
  },
  telemetry: {
    heartbeatUrl: webAddress({ help: "asked with GET after each healthy minute" }),
  },
};

type Value<T> =
  T extends Option<infer V>
    ? V
    : T extends Switchable<infer Inner>
      ? { readonly [K in keyof Inner]: Value<Inner[K]> } | false
      : { readonly [K in keyof T]: Value<T[K]> };

export type Settings = Value<typeof optionTable>;

export interface OptionEntry {
  /** As in the file, with dots: `service.baseUrl`. */
  readonly path: string;
  readonly option: Option<unknown>;
}

function* walk(node: object, path: string): Generator<OptionEntry | { switchPath: string }> {
  if ("option" in node) yield { path, option: node as Option<unknown> };
  else if ("switchable" in node) {
    yield { switchPath: path };
    yield* walk(node.switchable as object, path);
  } else
    for (const [key, child] of Object.entries(node)) yield* walk(child, path === "" ? key : `${path}.${key}`);
}

const nodes = [...walk(optionTable, "")];

export const optionEntries: readonly OptionEntry[] = nodes.filter((node) => "option" in node);

/** Groups of settings that may be `false` as a whole. */
export const switchPaths: readonly string[] = nodes.flatMap((node) =>
  "switchPath" in node ? [node.switchPath] : [],
);
