import { shareRoles } from "../model/status/share-status.ts";
import { INTRADAY_DAYS } from "../model/streams.ts";
import {
  anyTextOption,
  choiceOption,
  cronOption,
  derivativeTypesOption,
  durationOption,
  exportTargetOption,
  flagOption,
  hostOption,
  httpUrlOption,
  integerOption,
  lxIndexIdsOption,
  type Option,
  optionalTextOption,
  portOption,
  postgresUrlOption,
  retentionOption,
  selectorOption,
  serveClientsOption,
  serviceUrlOption,
  textListOption,
  textOption,
} from "./option-types.ts";

/** A group of settings that may be `false`: that stream is not synced. */
interface ToggleGroup<T> {
  readonly toggleGroup: T;
}

function toggleGroup<T>(options: T): ToggleGroup<T> {
  return { toggleGroup: options };
}

/** Every setting. The loader, the flags, the environment variables, the help and the types derive from it. */
export const optionTable = {
  service: {
    baseUrl: serviceUrlOption(
      {
        env: "MDS_BASE_URL",
        flag: "--base-url <url>",
        help: "the REST address, without /v3; also the REST token's audience",
      },
      "http",
    ),
    authUrl: serviceUrlOption(
      {
        env: "MDS_AUTH_URL",
        flag: "--auth-url <url>",
        help: "the address that issues tokens, without /v3; default: baseUrl",
      },
      "http",
    ),
    wsUrl: serviceUrlOption(
      {
        env: "MDS_WS_URL",
        flag: "--ws-url <url>",
        help: "the websocket address; also the websocket token's audience",
      },
      "ws",
    ),
    clientId: optionalTextOption({
      env: "MDS_CLIENT_ID",
      flag: "--client-id <id>",
      help: "the client id that the service issued",
    }),
    clientSecretFile: optionalTextOption({
      env: "MDS_CLIENT_SECRET_FILE",
      flag: "--client-secret-file <file>",
      help: "the file that holds the client secret (or set MDS_CLIENT_SECRET to the secret itself)",
    }),
    refreshSeconds: integerOption("the service's intraday cadence, in seconds", 30, 1, 3600),
    lxIndexIds: lxIndexIdsOption("index ids of BLX, ELX and XRPLX; default: discovered from the service"),
    concurrency: integerOption(
      { flag: "--concurrency <n>", help: "maximum number of concurrent requests" },
      8,
      1,
      64,
    ),
    maxRequestsPerSecond: integerOption("maximum request rate; 0: adaptive", 0, 0, 10_000),
  },
  warehouse: {
    path: textOption(
      { env: "MDS_WAREHOUSE", flag: "--warehouse <file>", help: "the SQLite file" },
      "data/mds.sqlite",
    ),
  },
  sync: {
    lookups: toggleGroup({
      every: durationOption("how often to refresh assets, markets and exchanges", "1h", "1m"),
    }),
    ohlcv: toggleGroup({
      GWA: selectorOption("daily bars of assets, in USD", { kind: "all" }, "assets"),
      MWA: selectorOption("daily bars of market pairs", { kind: "all" }, "pairs"),
      LX: selectorOption("daily bars of the liquid indices", { kind: "all" }, "indices"),
    }),
    intraday: toggleGroup({
      GWA: selectorOption("intraday ticks of assets, in USD", { kind: "top", count: 50 }, "assets"),
      MWA: selectorOption("intraday ticks of market pairs", { kind: "none" }, "pairs"),
      LX: selectorOption("intraday ticks of the liquid indices", { kind: "all" }, "indices"),
      days: integerOption(
        `how many days back to sync; the service has ${INTRADAY_DAYS}`,
        INTRADAY_DAYS,
        1,
        INTRADAY_DAYS,
      ),
    }),
    exchangeTickers: toggleGroup({
      exchanges: selectorOption("exchanges whose tickers to sync", { kind: "all" }, "exchanges"),
      markets: selectorOption("markets whose tickers to sync", { kind: "top", count: 50 }, "pairs"),
    }),
    marketCap: toggleGroup({
      every: durationOption(
        "how often to fetch market caps; the service refreshes them every 5 minutes",
        "5m",
        "30s",
      ),
    }),
    derivatives: toggleGroup({
      exchanges: selectorOption("exchanges whose derivatives to sync", { kind: "all" }, "exchanges"),
      types: derivativeTypesOption("types of derivatives to sync"),
      every: durationOption("how often to fetch derivative tickers", "1m", "10s"),
    }),
    quietMargin: durationOption(
      "an index without new records counts as complete up to this long before now",
      "1h",
      "1m",
    ),
    confirmEvery: durationOption(
      "how often REST confirms the ticks that arrived live; less often if the requests do not suffice",
      "10m",
      "1m",
    ),
    withdrawals: {
      answers: integerOption(
        "how many equal answers show that the service has withdrawn many rows; for an end or a 404 two are enough",
        3,
        1,
        1000,
      ),
      over: durationOption(
        "the time over which it must give these answers, also those about an end or a 404",
        "10m",
        "1s",
      ),
    },
  },
  retention: {
    exchangeTicks: retentionOption(
      "how long to store exchange ticks; deleted ranges become `lost`, reason `retention`",
    ),
    derivativeTicks: retentionOption("how long to store derivative ticks"),
  },
  schedule: {
    nightly: cronOption("the nightly backfill and audit: cron, UTC", "10 0 * * *"),
    export: cronOption("the Parquet export: cron, UTC; empty: never", ""),
    exportTo: exportTargetOption(
      "where it goes: a folder or s3://BUCKET/PREFIX; empty: the folder `export` beside the warehouse",
    ),
  },
  http: {
    host: hostOption(
      {
        env: "MDS_HTTP_HOST",
        flag: "--http-host <host>",
        help: "the address on which dashboard and metrics listen",
      },
      "127.0.0.1",
    ),
    port: portOption("MDS_HTTP_PORT", "--http-port <port>", "the port of dashboard and metrics", 9464),
    allowedHosts: textListOption("host names accepted in the Host header besides localhost and IP addresses"),
  },
  serve: {
    host: hostOption(
      {
        env: "MDS_SERVE_HOST",
        flag: "--serve-host <host>",
        help: "the address on which `mds-sync serve` listens, and `run` if this section is set",
      },
      "127.0.0.1",
    ),
    port: portOption(
      "MDS_SERVE_PORT",
      "--serve-port <port>",
      "the port of the service's own API from the warehouse",
      9465,
    ),
    clients: serveClientsOption(
      "who may request tokens: { id, secretHashFile, scopes }; none: no token is needed, on loopback only",
    ),
    tls: {
      certFile: optionalTextOption("the certificate (PEM); without one, plain HTTP"),
      keyFile: optionalTextOption("the private key of the certificate (PEM)"),
    },
    behindProxy: flagOption("true: a proxy in front speaks TLS, so plain HTTP is allowed beyond loopback"),
  },
  telemetry: {
    heartbeatUrl: httpUrlOption("requested with GET after each healthy minute"),
    unhealthyAfter: durationOption(
      "how long requests may only fail before the daemon counts as unhealthy",
      "5m",
      "1m",
    ),
  },
  shared: {
    url: postgresUrlOption({
      env: "MDS_SHARED_URL",
      help: "the PostgreSQL database that the warehouse is forwarded to, without the password; empty: none",
    }),
    passwordFile: optionalTextOption({
      env: "MDS_SHARED_PASSWORD_FILE",
      help: "the file that holds its password (or set MDS_SHARED_PASSWORD to the password itself)",
    }),
    role: choiceOption(
      "alone: this daemon alone forwards; pair: one of several that sync everything",
      shareRoles,
      {
        split:
          "pair, with which each daemon syncs everything and one of them forwards, or alone; split is gone",
      },
    ),
    name: anyTextOption("the name of this daemon there; empty: the host's name"),
    leaseSeconds: integerOption(
      "after this many seconds without a sign of life another daemon may take over",
      15,
      3,
      3600,
    ),
  },
};

type SettingValue<T> =
  T extends Option<infer V>
    ? V
    : T extends ToggleGroup<infer Inner>
      ? { readonly [K in keyof Inner]: SettingValue<Inner[K]> } | false
      : { readonly [K in keyof T]: SettingValue<T[K]> };

export type Settings = SettingValue<typeof optionTable>;

interface OptionEntry {
  /** The key in the file, with dots: `service.baseUrl`. */
  readonly path: string;
  readonly option: Option<unknown>;
}

function* walkOptions(node: object, path: string): Generator<OptionEntry | { groupPath: string }> {
  if ("option" in node) yield { path, option: node as Option<unknown> };
  else if ("toggleGroup" in node) {
    yield { groupPath: path };
    yield* walkOptions(node.toggleGroup as object, path);
  } else
    for (const [key, child] of Object.entries(node))
      yield* walkOptions(child, path === "" ? key : `${path}.${key}`);
}

const nodes = [...walkOptions(optionTable, "")];

export const optionEntries: readonly OptionEntry[] = nodes.filter((node) => "option" in node);

/** Groups of settings that may be `false`. */
export const toggleGroupPaths: readonly string[] = nodes.flatMap((node) =>
  "groupPath" in node ? [node.groupPath] : [],
);
