import { isIP } from "node:net";
import { Failure } from "./failure.ts";

/** Requests to a loopback address do not leave this computer: they need neither encryption nor a proxy. */
export function isLoopback({ hostname }: { readonly hostname: string }): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/.test(hostname);
}

const hostLabel = "[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?";
const hostName = new RegExp(`^${hostLabel}(\\.${hostLabel})*\\.?$`, "i");

/** An IP address, or a name. A name does not end in a number: `300.1.1.1` is a mistyped address. */
export function isHost(text: string): boolean {
  return isIP(text) !== 0 || (hostName.test(text) && !/(^|\.)\d+\.?$/.test(text));
}

/** Returns why the client must not use an address; undefined if it may. Credentials must be sent encrypted. */
export function findUrlProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return "is not a valid URL";
  const url = new URL(text);
  const isSecure = url.protocol === "https:" || url.protocol === "wss:";
  const isPlain = url.protocol === "http:" || url.protocol === "ws:";
  if (!isSecure && !isPlain) return `has the unsupported scheme ${url.protocol}`;
  if (isPlain && !isLoopback(url)) return "would send credentials in plain text";
  if (url.username || url.password) return "contains a user name or password";
  return undefined;
}

/** `name`: the setting that holds the address. */
export function parseServiceUrl(name: string, text: string): URL {
  const problem = findUrlProblem(text);
  if (problem === undefined) return new URL(text);
  throw new Failure(`${name} ${problem}`, {
    code: "bad_address",
    remedy: "use an https or wss URL (http and ws are allowed for localhost only)",
  });
}

/** The same text for every spelling of a REST address: to compare, to store and to show. */
export function normaliseAddress({ origin, pathname }: URL): string {
  return origin + pathname.replace(/\/+$/, "");
}

/** The parameters that `shared.url` may have. A forwarder always needs a server that accepts writes. */
const allowedParameters: Readonly<Record<string, RegExp>> = {
  sslmode: /./,
  sslrootcert: /./,
  target_session_attrs: /^(read-write|primary)$/,
};

/**
 * Splits `postgres://user@one:5432,two:5432/database` into an address for each server. Undefined: it is no such address, or it
 * has a password.
 */
export function listServerUrls(url: string): URL[] | undefined {
  const match = /^(postgres(?:ql)?:\/\/[^/?#]*@)([^/?#@]*)(\/.*)$/.exec(url);
  if (match === null) return undefined;
  const [, schemeAndUser, hosts = "", rest] = match;
  const texts = hosts.split(",").map((host) => `${schemeAndUser}${host}${rest}`);
  const isAddress = (text: string) => URL.canParse(text) && isComplete(new URL(text));
  return texts.every(isAddress) ? texts.map((text) => new URL(text)) : undefined;
}

function isComplete(url: URL): boolean {
  if (url.password !== "" || url.hash !== "") return false;
  if (url.username === "" || url.pathname.length <= 1) return false;
  // Without a host it is a server on this machine. The brackets of an IPv6 address belong to the URL.
  if (url.hostname !== "" && !isHost(url.hostname.replace(/^\[(.*)\]$/, "$1"))) return false;
  return [...url.searchParams].every(([name, value]) => allowedParameters[name]?.test(value) ?? false);
}
