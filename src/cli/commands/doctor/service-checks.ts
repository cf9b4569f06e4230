import type { Settings } from "../../../config/option-table.ts";
import type { ServiceSettings } from "../../../config/service-settings.ts";
import { exitCode, Failure } from "../../../model/failure.ts";
import { type Body, decodeBody, malformedBody } from "../../../model/response-body.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { silentLog } from "../../../runtime/log.ts";
import { type Timely, within } from "../../../runtime/timeouts.ts";
import type { AccessToken } from "../../../service/auth/access-tokens.ts";
import { createServiceClient, type ServiceClient } from "../../../service/client/client.ts";
import { followFeed } from "../../../service/live/feed.ts";
import { durationText } from "../../output/text.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";
import { checkScopes } from "./scope-checks.ts";

const DEADLINE_MS = 5_000;
/** The service tells the time in whole seconds. */
const CLOCK_TOLERANCE_MS = 2_000;
const usualRemedy = "check the address, the network, and any proxy or firewall between";

interface Surroundings {
  readonly clock: Clock;
  readonly stopping: AbortSignal;
}

/** Whether this client gets tokens, may read what the settings select, and reaches both interfaces. */
export async function checkService(
  service: ServiceSettings,
  sync: Settings["sync"],
  { clock, stopping }: Surroundings,
): Promise<Finding[]> {
  const client = createServiceClient({
    ...service,
    clock,
    random: Math.random,
    log: silentLog,
    observe: () => {},
  });
  const timely: Timely = (work) => within({ clock, ms: DEADLINE_MS, stopping }, work);
  try {
    const [rest, feed] = await Promise.all([
      tokenFor("REST token", service.baseUrl, client, timely),
      tokenFor("stream token", service.wsUrl, client, timely),
    ]);
    const [reached, scopes, greeted] = await Promise.all([
      rest.token ? checkRest(service.baseUrl, client, timely) : [],
      rest.token ? checkScopes(client, sync, rest.token, feed.token, timely) : [],
      feed.token ? checkFeed(service, client, clock, timely) : [],
    ]);
    return [
      rest.finding,
      forAudience(feed.finding, rest.token),
      ...reached,
      ...greeted,
      ...scopes,
      ...checkClock(client),
    ];
  } finally {
    await client.close();
  }
}

async function tokenFor(
  check: string,
  audience: string,
  client: ServiceClient,
  timely: Timely,
): Promise<{ finding: Finding; token?: AccessToken }> {
  try {
    const token = await timely((signal) => client.tokens.get(audience, signal));
    const seconds = (token.endsAt - token.issuedAt) / 1000;
    return { finding: ok(check, `granted for ${audience}, good for ${durationText(seconds)}`), token };
  } catch (error) {
    return { finding: problem(check, error, usualRemedy) };
  }
}

/** Credentials that were good enough for the other token are not what is wrong. */
function forAudience(finding: Finding, other: AccessToken | undefined): Finding {
  if (other === undefined || finding.exit !== exitCode.credentials) return finding;
  return { ...finding, remedy: "check service.wsUrl: it is what this token is asked for" };
}

async function checkRest(baseUrl: string, client: ServiceClient, timely: Timely): Promise<Finding[]> {
  try {
    await timely((signal) =>
      client.request({ endpoint: "/asset", query: { symbol: "BTC" }, attempts: 1, signal }, readList),
    );
    return [ok("REST", `${baseUrl} answers`)];
  } catch (error) {
    return [problem("REST", error, usualRemedy)];
  }
}

async function readList(body: Body): Promise<void> {
  let answer: unknown;
  try {
    answer = JSON.parse(new TextDecoder().decode(decodeBody(body)));
  } catch {
    throw malformedBody("not JSON");
  }
  const content = (answer as { content?: unknown } | null)?.content;
  if (!Array.isArray(content)) throw malformedBody("no content");
}

/** Dials and waits for the greeting. Nothing is subscribed to. */
async function checkFeed(
  { wsUrl, refreshSeconds }: ServiceSettings,
  client: ServiceClient,
  clock: Clock,
  timely: Timely,
): Promise<Finding[]> {
  const done = new AbortController();
  try {
    await timely(async (signal) => {
      let ending: string | undefined;
      const messages = followFeed({
        wsUrl,
        tokens: client.tokens,
        subscriptions: [],
        clock,
        random: Math.random,
        log: silentLog,
        refreshSeconds,
        isQuiet: async () => true,
        signal: AbortSignal.any([signal, done.signal]),
        observe: ({ event, reason }) => {
          if (event !== "ended") return;
          ending ??= reason;
          done.abort();
        },
      });
      for await (const { kind } of messages) if (kind === "connected") return;
      signal.throwIfAborted();
      throw notGreeted(ending ?? "unknown");
    });
    return [ok("stream", `${wsUrl} greets`)];
  } catch (error) {
    return [problem("stream", error, usualRemedy)];
  }
}

function notGreeted(reason: string): Failure {
  const refused = /_(401|403|4401|1008)$/.test(reason);
  return new Failure(`the websocket did not greet (${reason})`, {
    family: refused ? "operator" : "retry",
    code: "no_greeting",
    remedy: refused ? "check that service.wsUrl is the address that the client may use" : usualRemedy,
    exit: refused ? exitCode.credentials : exitCode.tryLater,
  });
}

function checkClock(client: ServiceClient): Finding[] {
  const { skewMs } = client.health();
  if (skewMs === undefined) return [];
  const seconds = Math.abs(skewMs) / 1000;
  if (Math.abs(skewMs) <= CLOCK_TOLERANCE_MS) return [ok("clock", "agrees with the service's")];
  const message = `this machine's clock is ${durationText(seconds)} ${skewMs > 0 ? "ahead of" : "behind"} the service's`;
  return [warning("clock", message, "let NTP set it; the sync itself goes by the service's clock")];
}
