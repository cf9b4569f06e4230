import type { Selector } from "../model/selector.ts";
import { shareRoles } from "../model/status/share-status.ts";
import { derivativeTypes, INTRADAY_DAYS } from "../model/streams.ts";
import { parseDuration } from "../model/time.ts";
import {
  anyText,
  boolean,
  cronTimes,
  durationValue,
  exportTarget,
  hostValue,
  httpUrl,
  integer,
  lxIndexIds,
  type Option,
  type OptionNames,
  oneOf,
  option,
  optionalText,
  postgresUrl,
  retention,
  selector,
  serveClients,
  serviceUrl,
  textList,
  textValue,
  wordList,
} from "./option-types.ts";

/** A group of settings that may be `false`: that stream is not synced. */
const toggleGroup = <T>(options: T) => ({ toggleGroup: options });

const seconds = (text: string) => parseDuration(text) ?? 0;
const port = integer(0, 65_535);
const all: Selector = { kind: "all" };
const top50: Selector = { kind: "top", count: 50 };

/** Every setting. The loader, the flags, the environment variables, the help and the types derive from it. */
export const optionTable = {
  service: {
    baseUrl: option(serviceUrl("http"), "the REST address, without /v3; also the REST token's audience"),
    authUrl: option(serviceUrl("http"), "the address that issues tokens, without /v3; default: baseUrl"),
    wsUrl: option(serviceUrl("ws"), "the websocket address; also the websocket token's audience"),
    clientId: option(optionalText, "the client id that the service issued"),
    clientSecretFile: option(
      optionalText,
      "the file that holds the client secret (or set MDS_CLIENT_SECRET to the secret itself)",
    ),
    refreshSeconds: option(integer(1, 3600), "the service's intraday cadence, in seconds", 30),
    lxIndexIds: option(
      lxIndexIds,
      "index ids of BLX, ELX and XRPLX; default: discovered from the service",
      {},
    ),
    concurrency: option(integer(1, 64), "maximum number of concurrent requests", 8),
    maxRequestsPerSecond: option(integer(0, 10_000), "maximum request rate; 0: adaptive", 0),
  },
  warehouse: {
    path: option(textValue, "the SQLite file", "data/mds.sqlite"),
  },
  sync: {
    lookups: toggleGroup({
      every: option(durationValue("1m"), "how often to refresh assets, markets and exchanges", seconds("1h")),
    }),
    ohlcv: toggleGroup({
      GWA: option(selector("assets"), "daily bars of assets, in USD", all),
      MWA: option(selector("pairs"), "daily bars of market pairs", all),
      LX: option(selector("indices"), "daily bars of the liquid indices", all),
    }),
    intraday: toggleGroup({
      GWA: option(selector("assets"), "intraday ticks of assets, in USD", top50),
      MWA: option(selector("pairs"), "intraday ticks of market pairs", { kind: "none" }),
      LX: option(selector("indices"), "intraday ticks of the liquid indices", all),
      days: option(
        integer(1, INTRADAY_DAYS),
        `how many days back to sync; the service has ${INTRADAY_DAYS}`,
        INTRADAY_DAYS,
      ),
    }),
    exchangeTickers: toggleGroup({
      exchanges: option(selector("exchanges"), "exchanges whose tickers to sync", all),
      markets: option(selector("pairs"), "markets whose tickers to sync", top50),
    }),
    marketCap: toggleGroup({
      every: option(
        durationValue("30s"),
        "how often to fetch market caps; the service refreshes them every 5 minutes",
        seconds("5m"),
      ),
    }),
    derivatives: toggleGroup({
      exchanges: option(selector("exchanges"), "exchanges whose derivatives to sync", all),
      types: option(wordList(derivativeTypes), "types of derivatives to sync", derivativeTypes),
      every: option(durationValue("10s"), "how often to fetch derivative tickers", seconds("1m")),
    }),
    quietMargin: option(
      durationValue("1m"),
      "an index without new records counts as complete up to this long before now",
      seconds("1h"),
    ),
    confirmEvery: option(
      durationValue("1m"),
      "how often REST confirms the ticks that arrived live; less often if the requests do not suffice",
      seconds("10m"),
    ),
    withdrawals: {
      answers: option(
        integer(1, 1000),
        "how many equal answers show that the service has withdrawn many rows; for an end or a 404 two are enough",
        3,
      ),
      over: option(
        durationValue("1s"),
        "the time over which it must give these answers, also those about an end or a 404",
        seconds("10m"),
      ),
    },
  },
  retention: {
    exchangeTicks: option(
      retention,
      "how long to store exchange ticks; deleted ranges become `lost`, reason `retention`",
    ),
    derivativeTicks: option(retention, "how long to store derivative ticks"),
  },
  schedule: {
    nightly: option(cronTimes, "the nightly backfill and audit: cron, UTC", "10 0 * * *"),
    export: option(cronTimes, "the Parquet export: cron, UTC; empty: never", ""),
    exportTo: option(
      exportTarget,
      "where it goes: a folder or s3://BUCKET/PREFIX; empty: the folder `export` beside the warehouse",
      "",
    ),
  },
  http: {
    host: option(hostValue, "the address on which dashboard and metrics listen", "127.0.0.1"),
    port: option(port, "the port of dashboard and metrics; 0: any free port", 9464),
    allowedHosts: option(
      textList,
      "host names accepted in the Host header besides localhost and IP addresses",
      [],
    ),
  },
  serve: {
    host: option(
      hostValue,
      "the address on which `mds-sync serve` listens, and `run` if this section is set",
      "127.0.0.1",
    ),
    port: option(port, "the port of the service's own API from the warehouse; 0: any free port", 9465),
    clients: option(
      serveClients,
      "who may request tokens: { id, secretHashFile, scopes }; none: no token is needed, on loopback only",
      [],
    ),
    tls: {
      certFile: option(optionalText, "the certificate (PEM); without one, plain HTTP"),
      keyFile: option(optionalText, "the private key of the certificate (PEM)"),
    },
    behindProxy: option(
      boolean,
      "true: a proxy in front speaks TLS, so plain HTTP is allowed beyond loopback",
      false,
    ),
  },
  telemetry: {
    heartbeatUrl: option(httpUrl, "requested with GET after each healthy minute", ""),
    unhealthyAfter: option(
      durationValue("1m"),
      "how long requests may only fail before the daemon counts as unhealthy",
      seconds("5m"),
    ),
  },
  shared: {
    url: option(
      postgresUrl,
      "the PostgreSQL database that the warehouse is forwarded to, without the password; empty: none",
      "",
    ),
    passwordFile: option(
      optionalText,
      "the file that holds its password (or set MDS_SHARED_PASSWORD to the password itself)",
    ),
    role: option(
      oneOf(shareRoles, {
        split:
          "pair, with which each daemon syncs everything and one of them forwards, or alone; split is gone",
      }),
      "alone: this daemon alone forwards; pair: one of several that sync everything",
      "alone",
    ),
    name: option(anyText, "the name of this daemon there; empty: the host's name", ""),
    leaseSeconds: option(
      integer(3, 3600),
      "after this many seconds without a sign of life another daemon may take over",
      15,
    ),
  },
};

/** The settings that the environment and flags may give too. */
export const optionNames = {
  "service.baseUrl": { env: "MDS_BASE_URL", flag: "--base-url <url>" },
  "service.authUrl": { env: "MDS_AUTH_URL", flag: "--auth-url <url>" },
  "service.wsUrl": { env: "MDS_WS_URL", flag: "--ws-url <url>" },
  "service.clientId": { env: "MDS_CLIENT_ID", flag: "--client-id <id>" },
  "service.clientSecretFile": { env: "MDS_CLIENT_SECRET_FILE", flag: "--client-secret-file <file>" },
  "service.concurrency": { flag: "--concurrency <n>" },
  "warehouse.path": { env: "MDS_WAREHOUSE", flag: "--warehouse <file>" },
  "http.host": { env: "MDS_HTTP_HOST", flag: "--http-host <host>" },
  "http.port": { env: "MDS_HTTP_PORT", flag: "--http-port <port>" },
  "serve.host": { env: "MDS_SERVE_HOST", flag: "--serve-host <host>" },
  "serve.port": { env: "MDS_SERVE_PORT", flag: "--serve-port <port>" },
  "shared.url": { env: "MDS_SHARED_URL" },
  "shared.passwordFile": { env: "MDS_SHARED_PASSWORD_FILE" },
} as const satisfies Readonly<Record<string, OptionNames>>;

type SettingValue<T> =
  T extends Option<infer V>
    ? V
    : T extends { readonly toggleGroup: infer Inner }
      ? { readonly [K in keyof Inner]: SettingValue<Inner[K]> } | false
      : { readonly [K in keyof T]: SettingValue<T[K]> };

export type Settings = SettingValue<typeof optionTable>;

interface OptionEntry {
  /** The key in the file, with dots: `service.baseUrl`. */
  readonly path: string;
  readonly option: Option<unknown>;
}

const names: Readonly<Record<string, OptionNames>> = optionNames;

function* walkOptions(node: object, path: string): Generator<OptionEntry | { groupPath: string }> {
  if ("option" in node) yield { path, option: { ...(node as Option<unknown>), ...names[path] } };
  else if ("toggleGroup" in node) {
    yield { groupPath: path };
    yield* walkOptions(node.toggleGroup as object, path);
  } else
    for (const [key, child] of Object.entries(node))
      yield* walkOptions(child, path === "" ? key : `${path}.${key}`);
}

const nodes = [...walkOptions(optionTable, "")];

export const optionEntries: readonly OptionEntry[] = nodes.filter((node) => "option" in node);

export const toggleGroupPaths: readonly string[] = nodes.flatMap((node) =>
  "groupPath" in node ? [node.groupPath] : [],
);
