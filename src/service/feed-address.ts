import { Agent } from "node:https";
import { encodeOpaque } from "./endpoints.ts";

/** The address to dial, token included: it must never be shown. */
export function feedAddress(wsUrl: URL, token: string): string {
  const url = new URL(wsUrl);
  url.hash = "";
  // By hand: the form encoding of URLSearchParams is not the one that secrets are searched for in texts.
  url.search = `${url.search}${url.search === "" ? "?" : "&"}access_token=${encodeOpaque(token)}`;
  return url.href;
}

/** The way out through `HTTPS_PROXY`, where the environment names one; this machine itself is always dialled directly. */
export function agentFor(wsUrl: URL, env: NodeJS.ProcessEnv): Agent | undefined {
  if (wsUrl.protocol !== "wss:" || (!env.HTTPS_PROXY && !env.https_proxy)) return undefined;
  if (/^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(wsUrl.hostname)) return undefined;
  return new Agent({ proxyEnv: env, keepAlive: false });
}
