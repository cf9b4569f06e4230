import { parseHttpDate, retryAfterMs } from "../http/http-headers.ts";

/** Why a connection ended, or never began, in one word that metrics and people can use. Never a text of the service's. */
export interface Ending {
  readonly reason: string;
  /** What a person can do about it, where it lies with this machine. */
  readonly remedy?: string;
  /** The token was not accepted: earn a new one before the next attempt. */
  readonly tokenRefused?: boolean;
  /** Waiting a moment will not help: the next attempts are minutes apart. */
  readonly slow?: boolean;
  /** No token was to be had: as soon as there are some for others, it is worth another try. */
  readonly noToken?: boolean;
  /** The service asked us to stay away for so long. */
  readonly retryAfterMs?: number;
}

/** The answer to the upgrade was an ordinary one: the same classes as in REST. `now` is the local wall clock. */
export function endingOfStatus(
  status: number | undefined,
  headers: { readonly date?: string | undefined; readonly "retry-after"?: string | undefined },
  now: number,
): Ending {
  const reason = `http_${status ?? 0}`;
  if (status === 401) return { reason, tokenRefused: true };
  if (status !== 429 && (status === undefined || status < 500)) return { reason, slow: true };
  const answeredAt = parseHttpDate(headers.date ?? "", now) ?? now;
  return { reason, retryAfterMs: retryAfterMs(headers["retry-after"], answeredAt) };
}

/**
 * A close frame, or 1006 for a socket that went without one. 1008 is what servers say to a bad token when they have accepted the
 * upgrade already, so before the greeting it counts as 401; codes of an application mirror HTTP where they can.
 */
export function endingOfClose(code: number, greeted: boolean): Ending {
  const reason = `closed_${code}`;
  if (code === 4401 || (code === 1008 && !greeted)) return { reason, tokenRefused: true };
  if (code === 1008 || code === 4403 || code === 4404) return { reason, slow: true };
  return { reason };
}

/** An error of the socket or the protocol, by its code alone: messages may quote the address, and with it the token. */
export function endingOfError(error: unknown): Ending {
  const code =
    typeof error === "object" && error !== null && "code" in error ? String(error.code).slice(0, 60) : "";
  if (code === "EMFILE" || code === "ENFILE")
    return { reason: "too_many_files", remedy: "raise the limit of open files" };
  const isTls = /CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO/.test(code);
  const reason = /^[A-Z][A-Z0-9_]+$/.test(code) ? code.toLowerCase() : "socket_error";
  return isTls ? { reason, slow: true } : { reason };
}

/** Frames that the protocol library refuses: too long, not UTF-8, compressed although we did not agree to it, endless. */
export function isBadFrame(error: unknown): boolean {
  return (
    typeof error === "object" && error !== null && "code" in error && String(error.code).startsWith("WS_ERR_")
  );
}
