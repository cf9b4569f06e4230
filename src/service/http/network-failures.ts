import { Failure, type FailureCode } from "../../model/failure.ts";
import { isLoopback } from "../../model/service-url.ts";

/** The way to a host: failures name the address that failed, never a user or password of it. */
export interface NetworkRoute {
  /** `host:port` of the service. */
  readonly address: string;
  readonly proxy: ProxyRoute | undefined;
}

interface ProxyRoute {
  readonly address: string;
  /** The environment variable that sets it. */
  readonly variable: string;
}

const defaultPorts: Readonly<Record<string, string>> = { "https:": "443", "wss:": "443" };

/** `host:port` of a URL, without credentials, path and query. */
export function addressOf({ hostname, port, protocol }: URL): string {
  return `${hostname}:${port || (defaultPorts[protocol] ?? "80")}`;
}

/** Which proxy the environment sets for an address; loopback addresses are always connected directly. */
export function findRoute(url: URL, env: NodeJS.ProcessEnv): NetworkRoute {
  const address = addressOf(url);
  const isSecure = url.protocol === "https:" || url.protocol === "wss:";
  // Undici prefers the lower-case names, and uses the proxy for http if there is none for https.
  const names = isSecure
    ? ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"]
    : ["http_proxy", "HTTP_PROXY"];
  const variable = names.find((name) => env[name]);
  const proxyUrl = URL.parse(variable === undefined ? "" : (env[variable] ?? ""));
  if (variable === undefined || !proxyUrl || isLoopback(url) || isExempt(url, address, env))
    return { address, proxy: undefined };
  return { address, proxy: { address: addressOf(proxyUrl), variable } };
}

/** Whether `NO_PROXY` names the host: exactly, as a domain above it, or as `*`, with or without a port. */
function isExempt({ hostname }: URL, address: string, env: NodeJS.ProcessEnv): boolean {
  const entries = (env.no_proxy ?? env.NO_PROXY ?? "").split(/[,\s]+/).filter((entry) => entry !== "");
  return entries.some((entry) => {
    const [name = "", port] = entry.toLowerCase().split(":");
    if (port !== undefined && !address.endsWith(`:${port}`)) return false;
    const domain = name.replace(/^\*?\./, "");
    return name === "*" || hostname === name || hostname.endsWith(`.${domain}`);
  });
}

interface NetworkFailureKind {
  readonly code: FailureCode;
  /** `host`: the address of the service or of the proxy. */
  readonly describe: (host: string) => string;
  readonly remedy: string;
  /** It also happens behind a proxy that works. */
  readonly isAboutService?: boolean;
}

const noFileDescriptors: NetworkFailureKind = {
  code: "too_many_files",
  describe: () => "the process has no file descriptor left",
  remedy: "raise the limit of open files (LimitNOFILE, ulimit -n)",
  isAboutService: true,
};
const connectionLost: NetworkFailureKind = {
  code: "connection_lost",
  describe: (host) => `the connection to ${host} broke`,
  remedy: "retried automatically; if it persists, check the network and the service",
  isAboutService: true,
};
const connectTimeout: NetworkFailureKind = {
  code: "connect_timeout",
  describe: (host) => `connecting to ${host} timed out`,
  remedy: "check the address, the network and the firewall; set HTTPS_PROXY if a proxy is needed",
};
const unreachable: NetworkFailureKind = {
  code: "network_unreachable",
  describe: (host) => `there is no route to ${host}`,
  remedy: "check the network of this machine",
};
const kindByErrorCode: Readonly<Record<string, NetworkFailureKind>> = {
  ECONNREFUSED: {
    code: "connection_refused",
    describe: (host) => `${host} refused the connection`,
    remedy: "check the address and port; the service is down, or a firewall refuses",
  },
  ENOTFOUND: {
    code: "dns_failed",
    describe: (host) => `the host name of ${host} cannot be resolved`,
    remedy: "check the spelling of the address and the DNS server",
  },
  EAI_AGAIN: {
    code: "dns_failed",
    describe: (host) => `the DNS server did not answer for ${host}`,
    remedy: "check the network and the DNS server of this machine",
  },
  UND_ERR_CONNECT_TIMEOUT: connectTimeout,
  ETIMEDOUT: connectTimeout,
  EHOSTUNREACH: unreachable,
  ENETUNREACH: unreachable,
  EMFILE: noFileDescriptors,
  ENFILE: noFileDescriptors,
  ECONNRESET: connectionLost,
  EPIPE: connectionLost,
  UND_ERR_SOCKET: connectionLost,
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: connectionLost,
};

const tlsErrorCode =
  /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_CA|EPROTO)/;
const tlsCauses: readonly [code: RegExp, cause: string, remedy: string][] = [
  [
    /EXPIRED|NOT_YET_VALID/,
    "its certificate is not valid at this time",
    "check the clock of this machine; if it is right, the service must renew the certificate",
  ],
  [
    /ALTNAME|HOSTNAME/,
    "its certificate belongs to another host name",
    "check the address; a proxy or portal may answer instead",
  ],
  [
    /^ERR_SSL_|EPROTO/,
    "the TLS handshake failed",
    "check that the address and port speak TLS; a proxy may interfere",
  ],
  [
    /./,
    "no known authority has signed its certificate",
    "if a proxy intercepts TLS, or the service has an authority of its own, put its certificate into NODE_EXTRA_CA_CERTS",
  ],
];

function tlsFailure(code: string): NetworkFailureKind {
  const [, cause = "", remedy = ""] = tlsCauses.find(([pattern]) => pattern.test(code)) ?? [];
  return {
    code: "tls_failed",
    describe: (host) => `no secure connection to ${host}: ${cause}`,
    remedy,
    isAboutService: true,
  };
}

/** Collects the codes of the error and of everything it wraps: undici and happy eyeballs nest errors. */
function errorCodes(error: unknown, depth = 0): string[] {
  if (typeof error !== "object" || error === null || depth > 4) return [];
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown };
  const inner = [cause, ...(Array.isArray(errors) ? errors : [])];
  const own = typeof code === "string" ? [code] : [];
  return [...own, ...inner.flatMap((each) => errorCodes(each, depth + 1))];
}

/** Converts a network or TLS error into a `retry` failure. The client never falls back to weaker security. */
export function toNetworkFailure(error: unknown, { address, proxy }: NetworkRoute): Failure {
  const tunnelStatus = /Proxy response \((\d{3})\)/.exec(error instanceof Error ? error.message : "")?.[1];
  if (proxy && tunnelStatus !== undefined) return tunnelFailure(tunnelStatus, address, proxy);
  const codes = errorCodes(error);
  const known = codes
    .map((code) => (tlsErrorCode.test(code) ? tlsFailure(code) : kindByErrorCode[code]))
    .find((kind) => kind !== undefined);
  // Pass on only the codes, never the error object: it could hold a secret.
  const suffix = codes.length > 0 ? ` (${[...new Set(codes)].join(", ")})` : "";
  if (!known)
    return new Failure(`the request to ${address} failed${suffix}`, {
      code: "network_failed",
      remedy: "check the address, the network, and any proxy or firewall",
    });
  // A client behind a proxy connects to nothing else, so it is the proxy that cannot be reached.
  const isProxy = proxy !== undefined && !known.isAboutService;
  const host = isProxy ? `the proxy ${proxy.address}` : address;
  const remedy = isProxy ? proxyRemedy(proxy) : known.remedy;
  return new Failure(`${known.describe(host)}${suffix}`, { code: known.code, remedy });
}

function proxyRemedy({ variable }: ProxyRoute): string {
  return `start the proxy, or correct or unset ${variable}; NO_PROXY exempts hosts from it`;
}

function tunnelFailure(status: string, address: string, proxy: ProxyRoute): Failure {
  const remedy =
    status === "407"
      ? `put the user and password of the proxy into ${proxy.variable}`
      : `check whether the proxy may connect to it, or unset ${proxy.variable}; NO_PROXY exempts hosts from it`;
  return new Failure(`the proxy ${proxy.address} did not connect to ${address} (${status})`, {
    code: "proxy_failed",
    remedy,
  });
}

export function timeoutFailure(ms: number, { address }: Pick<NetworkRoute, "address">): Failure {
  return new Failure(`${address} did not answer within ${Math.round(ms / 1000)} seconds`, {
    code: "timeout",
    remedy: "retried automatically; if it persists, check the network and the service",
  });
}
