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
  const [, scheme, user = "", hosts = "", rest = ""] =
    /^(postgres(?:ql)?):\/\/([^/?#]*@)?([^/?#@]*)([/?#].*)?$/.exec(url) ?? [];
  if (scheme === undefined) return undefined;
  const texts = hosts.split(",").map((host) => `${scheme}://${user}${host}${rest}`);
  if (!texts.every((text) => URL.canParse(text))) return undefined;
  const urls = texts.map((text) => new URL(text));
  return urls.every(isComplete) ? urls : undefined;
}

function isComplete(url: URL): boolean {
  if (url.password !== "" || url.hash !== "") return false;
  if (url.username === "" || url.hostname === "" || url.pathname.length <= 1) return false;
  return [...url.searchParams].every(([name, value]) => allowedParameters[name]?.test(value) ?? false);
}
