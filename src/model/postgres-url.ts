import { isHost } from "./service-url.ts";

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
