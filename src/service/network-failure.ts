import { Failure } from "../model/failure.ts";

interface Kind {
  code: string;
  words: string;
  remedy?: string;
}

const noFiles: Kind = {
  code: "too_many_files",
  words: "no file descriptor left",
  remedy: "raise the limit of open files",
};
const lost: Kind = { code: "connection_lost", words: "the connection broke" };
const kinds: Record<string, Kind> = {
  ECONNREFUSED: { code: "connection_refused", words: "the service refused the connection" },
  ENOTFOUND: {
    code: "dns_failed",
    words: "the service's name is unknown",
    remedy: "check the address and the name server",
  },
  EAI_AGAIN: { code: "dns_failed", words: "the name server did not answer" },
  UND_ERR_CONNECT_TIMEOUT: { code: "connect_timeout", words: "no connection in time" },
  ETIMEDOUT: { code: "connect_timeout", words: "no connection in time" },
  EHOSTUNREACH: { code: "network_unreachable", words: "no route to the service" },
  ENETUNREACH: { code: "network_unreachable", words: "no network" },
  EMFILE: noFiles,
  ENFILE: noFiles,
  ECONNRESET: lost,
  EPIPE: lost,
  UND_ERR_SOCKET: lost,
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: lost,
};

const tls: Kind = {
  code: "tls_failed",
  words: "the service's certificate or its TLS was not accepted",
  remedy: "check the certificate, the clock, and NODE_EXTRA_CA_CERTS if a proxy re-signs",
};
const tlsCode =
  /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_CA|EPROTO)/;

/** The error's code or that of what lies beneath it: undici and happy eyeballs wrap. */
function codesOf(error: unknown, depth = 0): string[] {
  if (typeof error !== "object" || error === null || depth > 4) return [];
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown };
  const inner = [cause, ...(Array.isArray(errors) ? errors : [])];
  return [...(typeof code === "string" ? [code] : []), ...inner.flatMap((each) => codesOf(each, depth + 1))];
}

/** What went wrong below HTTP. All of it heals by waiting; nothing of it is ever retried less securely. */
export function networkFailure(error: unknown): Failure {
  const codes = codesOf(error);
  const known = codes
    .map((code) => (tlsCode.test(code) ? tls : kinds[code]))
    .find((kind) => kind !== undefined);
  const kind = known ?? { code: "network_failed", words: "the exchange with the service failed" };
  // Errors of undici carry no headers; even so only the codes are passed on, not the object.
  const because = codes.length > 0 ? ` (${[...new Set(codes)].join(", ")})` : "";
  return new Failure(`${kind.words}${because}`, { family: "retry", code: kind.code, remedy: kind.remedy });
}
