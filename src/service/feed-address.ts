import { Failure } from "../model/failure.ts";

/** The address to dial, token included: it must never be shown. */
export function feedAddress(wsUrl: string, token: string): string {
  const url = checkedUrl(wsUrl);
  url.searchParams.set("access_token", token);
  return url.href;
}

/** Throws unless the address is a websocket's and the token would travel encrypted or not leave the machine. */
export function checkedUrl(wsUrl: string): URL {
  const url = URL.canParse(wsUrl) ? new URL(wsUrl) : undefined;
  const remedy = "set service.wsUrl (MDS_WS_URL) to the wss:// address of the service";
  if (url?.protocol !== "wss:" && url?.protocol !== "ws:")
    throw new Failure("the websocket address is not one", {
      family: "operator",
      code: "bad_address",
      remedy,
    });
  const host = url.hostname;
  const isLoopback = host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
  if (url.protocol === "ws:" && !isLoopback)
    throw new Failure("the websocket address is not encrypted", {
      family: "operator",
      code: "insecure_address",
      remedy,
    });
  url.hash = "";
  return url;
}

/** What the service wrote, without the token, in whichever way it may repeat it. */
export function withoutSecret(text: string, secret: string): string {
  if (secret === "") return text;
  let cleaned = text;
  const query = new URLSearchParams({ token: secret }).toString().slice("token=".length);
  for (const form of [secret, encodeURIComponent(secret), query, JSON.stringify(secret).slice(1, -1)])
    cleaned = cleaned.replaceAll(form, "[token]");
  return cleaned;
}
