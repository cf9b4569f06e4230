import { isIP } from "node:net";
import { exitCode, Failure } from "./failure.ts";

const loopbackHost = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Requests to a loopback address do not leave this computer: they need neither encryption nor a proxy. */
export function isLoopback({ hostname }: URL): boolean {
  return loopbackHost.test(hostname);
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
    exit: exitCode.usage,
  });
}

/** The same text for every spelling of a REST address: to compare, to store and to show. */
export function normaliseAddress({ origin, pathname }: URL): string {
  return origin + pathname.replace(/\/+$/, "");
}
