import type { Settings } from "../../../config/option-table.ts";
import type { ServiceSettings } from "../../../config/service-settings.ts";
import { exitCode, Failure } from "../../../model/failure.ts";
import { decodeBody, malformedBodyFailure, type ResponseBody } from "../../../model/response-body.ts";
import { CLOCK_TOLERANCE_MS } from "../../../model/time.ts";
import { silentLog } from "../../../runtime/log.ts";
import { type TimeoutRunner, withTimeout } from "../../../runtime/timeouts.ts";
import type { AccessToken } from "../../../service/auth/access-tokens.ts";
import { createServiceClient, type ServiceClient } from "../../../service/client/client.ts";
import { followFeed } from "../../../service/live/feed.ts";
import { SubscriptionStates } from "../../../service/live/subscription-states.ts";
import { formatDuration } from "../../output/text.ts";
import type { CommandContext } from "../../support/context.ts";
import { type Finding, okFinding, runCheck, type ServiceProbe, warningFinding } from "./finding.ts";
import { checkScopes } from "./scope-checks.ts";

const CHECK_TIMEOUT_MS = 5_000;
const NETWORK_REMEDY = "check the address, the network, and any proxy or firewall";

/** Checks tokens, scopes, clock, and whether REST and websocket can be reached. */
export async function checkService(
  service: ServiceSettings,
  sync: Settings["sync"],
  { clock, stopping }: Pick<CommandContext, "clock" | "stopping">,
  /** More checks; without a client if the service grants no token. */
  checkWithClient: (client: ServiceClient | undefined, runWithTimeout: TimeoutRunner) => Promise<Finding[]>,
): Promise<Finding[]> {
  const client = createServiceClient({
    ...service,
    clock,
    random: Math.random,
    log: silentLog,
    onEvent: () => {},
  });
  const runWithTimeout: TimeoutRunner = (work) =>
    withTimeout({ clock, ms: CHECK_TIMEOUT_MS, stopping }, work);
  const probe = { client, clock, runWithTimeout };
  try {
    const [rest, feed] = await Promise.all([
      checkToken("REST token", service.baseUrl, probe),
      checkToken("live token", service.wsUrl, probe),
    ]);
    const [restFinding, scopeFindings, feedFinding, otherFindings] = await Promise.all([
      rest.token && checkRest(service.baseUrl, probe),
      rest.token && checkScopes(probe, sync, rest.token, feed.token),
      feed.token && checkFeed(service, probe),
      checkWithClient(rest.token && client, runWithTimeout),
    ]);
    return [
      rest.finding,
      withAudienceRemedy(feed.finding, rest.token),
      restFinding ?? [],
      feedFinding ?? [],
      scopeFindings ?? [],
      checkClock(client),
      otherFindings,
    ].flat();
  } finally {
    await client.close();
  }
}

async function checkToken(
  check: string,
  audience: string,
  { client, runWithTimeout }: ServiceProbe,
): Promise<{ finding: Finding; token: AccessToken | undefined }> {
  let token: AccessToken | undefined;
  const ask = async () => {
    token = await runWithTimeout((signal) => client.tokensOf(audience).get(signal));
    const seconds = (token.expiresAt - token.firstSeenAt) / 1000;
    return `granted for ${audience}, valid for ${formatDuration(seconds)}`;
  };
  return { finding: await runCheck(check, ask, NETWORK_REMEDY), token };
}

/** If the service granted a REST token, the credentials are right and the websocket's audience is wrong. */
function withAudienceRemedy(finding: Finding, restToken: AccessToken | undefined): Finding {
  if (restToken === undefined || finding.exit !== exitCode.credentials) return finding;
  return { ...finding, remedy: "check service.wsUrl: it is the audience of this token" };
}

function checkRest(baseUrl: string, { client, runWithTimeout }: ServiceProbe): Promise<Finding> {
  const request = { endpoint: "/asset", query: { symbol: "BTC" }, maxAttempts: 1 };
  const ask = async () => {
    await runWithTimeout((signal) => client.request({ ...request, signal }, assertList));
    return `${baseUrl} answers`;
  };
  return runCheck("REST", ask, NETWORK_REMEDY);
}

async function assertList(body: ResponseBody): Promise<void> {
  let answer: unknown;
  try {
    answer = JSON.parse(new TextDecoder().decode(decodeBody(body)));
  } catch {
    throw malformedBodyFailure("not JSON");
  }
  const content = (answer as { content?: unknown } | null)?.content;
  if (!Array.isArray(content)) throw malformedBodyFailure("no content");
}

/** Connects and waits for the greeting, without any subscription. */
function checkFeed(
  { wsUrl, refreshSeconds }: ServiceSettings,
  { client, clock, runWithTimeout }: ServiceProbe,
): Promise<Finding> {
  const done = new AbortController();
  const connect = async (signal: AbortSignal) => {
    let ending: string | undefined;
    const messages = followFeed({
      wsUrl,
      client,
      subscriptions: new SubscriptionStates(),
      clock,
      random: Math.random,
      log: silentLog,
      refreshSeconds,
      isMarketQuiet: async () => true,
      signal: AbortSignal.any([signal, done.signal]),
      onEvent: (event) => {
        if (event.kind !== "feed" || event.event !== "ended") return;
        ending ??= event.reason;
        done.abort();
      },
    });
    for await (const { kind } of messages) if (kind === "connected") return `${wsUrl} accepts connections`;
    signal.throwIfAborted();
    throw noGreetingFailure(ending ?? "unknown");
  };
  return runCheck("live feed", () => runWithTimeout(connect), NETWORK_REMEDY);
}

function noGreetingFailure(reason: string): Failure {
  const isRefused = /_(401|403|4401|1008)$/.test(reason);
  return new Failure(`the websocket sent no greeting (${reason})`, {
    family: isRefused ? "operator" : "retry",
    code: "no_greeting",
    remedy: isRefused ? "check that service.wsUrl is the address that the client may use" : NETWORK_REMEDY,
    exit: isRefused ? exitCode.credentials : exitCode.tryLater,
  });
}

function checkClock(client: ServiceClient): Finding[] {
  const { skewMs } = client.health();
  if (skewMs === undefined) return [];
  const seconds = Math.abs(skewMs) / 1000;
  if (Math.abs(skewMs) <= CLOCK_TOLERANCE_MS) return [okFinding("clock", "agrees with the service's")];
  const message = `this machine's clock is ${formatDuration(seconds)} ${skewMs > 0 ? "ahead of" : "behind"} the service's`;
  return [
    warningFinding("clock", message, "synchronise it with NTP; the sync itself uses the service's clock"),
  ];
}
