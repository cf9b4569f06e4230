import type { ServiceSettings } from "../../../config/load-settings.ts";
import type { Settings } from "../../../config/option-table.ts";
import { exitCode, Failure, failureCode } from "../../../model/failure.ts";
import { decodeBody, malformedBodyFailure, type ResponseBody } from "../../../model/response-body.ts";
import type { Selector } from "../../../model/selector.ts";
import { indexTypes } from "../../../model/stream-columns.ts";
import { type HistoryStream, type Stream, streamTable } from "../../../model/streams.ts";
import { CLOCK_TOLERANCE_MS, formatTimestamp, MICROS_PER_MS } from "../../../model/time.ts";
import { silentLog } from "../../../runtime/log.ts";
import type { AccessToken } from "../../../service/auth/access-tokens.ts";
import { findMissingScopes } from "../../../service/auth/parking.ts";
import { createServiceClient, type ServiceClient } from "../../../service/client/client.ts";
import type { ClientEventListener } from "../../../service/http/client-events.ts";
import { guessMissingScope, type ServiceRequest } from "../../../service/http/request.ts";
import { followFeed } from "../../../service/live/feed.ts";
import { SubscriptionStates } from "../../../service/live/subscription-states.ts";
import { formatDuration } from "../../output/text.ts";
import { Check, type Finding, type Probe, type ServiceProbe } from "./finding.ts";

const NETWORK_REMEDY = "check the address, the network, and any proxy or firewall";

/** Checks tokens, scopes, clock, and whether REST and websocket can be reached. */
export async function checkService(
  service: ServiceSettings,
  sync: Settings["sync"],
  base: Probe,
  /** More checks; without a client if the service grants no token. */
  checkWithClient: (client: ServiceClient | undefined) => Promise<Finding[]>,
): Promise<Finding[]> {
  const options = { random: Math.random, log: silentLog, onEvent: () => {} };
  const client = createServiceClient({ ...service, ...options, clock: base.clock });
  const probe = { ...base, client };
  try {
    const [rest, feed] = await Promise.all([
      checkToken("REST token", service.baseUrl, probe),
      checkToken("live token", service.wsUrl, probe),
    ]);
    const [restFinding, scopeFindings, feedFinding, otherFindings] = await Promise.all([
      rest.token && checkRest(service.baseUrl, probe),
      rest.token && checkScopes(probe, sync, rest.token, feed.token),
      feed.token && checkFeed(service, probe),
      checkWithClient(rest.token && client),
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

/** What `ask` has found out; its failure is a problem. */
async function reach(name: string, ask: () => Promise<string>): Promise<Finding> {
  const check = new Check(name);
  return ask().then(
    (message) => check.ok(message),
    (error: unknown) => check.failure(error, NETWORK_REMEDY),
  );
}

async function checkToken(
  check: string,
  audience: string,
  { client, runWithTimeout }: ServiceProbe,
): Promise<{ finding: Finding; token: AccessToken | undefined }> {
  let token: AccessToken | undefined;
  const finding = await reach(check, async () => {
    token = await runWithTimeout((signal) => client.tokensOf(audience).get(signal));
    const seconds = (token.expiresAt - token.firstSeenAt) / 1000;
    return `granted for ${audience}, valid for ${formatDuration(seconds)}`;
  });
  return { finding, token };
}

/** If the service granted a REST token, the credentials are right and the websocket's audience is wrong. */
function withAudienceRemedy(finding: Finding, restToken: AccessToken | undefined): Finding {
  if (restToken === undefined || finding.exit !== exitCode.credentials) return finding;
  return { ...finding, remedy: "check service.wsUrl: it is the audience of this token" };
}

function checkRest(baseUrl: string, { client, runWithTimeout }: ServiceProbe): Promise<Finding> {
  const request = { endpoint: "/asset", query: { symbol: "BTC" }, maxAttempts: 1 };
  return reach("REST", async () => {
    await runWithTimeout((signal) => client.request({ ...request, signal }, assertList));
    return `${baseUrl} answers`;
  });
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
    const onEvent: ClientEventListener = (event) => {
      if (event.kind !== "feed" || event.event !== "ended") return;
      ending ??= event.reason;
      done.abort();
    };
    const messages = followFeed({
      wsUrl,
      client: { ...client, onEvent },
      subscriptions: new SubscriptionStates(),
      clock,
      random: Math.random,
      log: silentLog,
      refreshSeconds,
      isMarketQuiet: async () => true,
      signal: AbortSignal.any([signal, done.signal]),
    });
    for await (const { kind } of messages) if (kind === "connected") return `${wsUrl} accepts connections`;
    signal.throwIfAborted();
    throw noGreetingFailure(ending ?? "unknown");
  };
  return reach("live feed", () => runWithTimeout(connect));
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
  const check = new Check("clock");
  if (Math.abs(skewMs) <= CLOCK_TOLERANCE_MS) return [check.ok("agrees with the service's")];
  const message = `this machine's clock is ${formatDuration(seconds)} ${skewMs > 0 ? "ahead of" : "behind"} the service's`;
  return [check.warning(message, "synchronise it with NTP; the sync itself uses the service's clock")];
}

const scopeCheck = new Check("scopes");

interface ScopeProbe {
  readonly stream: Stream;
  readonly request: ServiceRequest;
  /** The websocket also carries the stream, if its token has the scope. */
  readonly hasLiveFeed: boolean;
}

/**
 * Checks for each selected stream that the service grants the scope. A probe is the cheapest possible request; any
 * response except 403 passes.
 */
async function checkScopes(
  probe: ServiceProbe,
  sync: Settings["sync"],
  rest: AccessToken,
  feed: AccessToken | undefined,
): Promise<Finding[]> {
  const now = Math.floor(probe.client.server.now() ?? 0) * MICROS_PER_MS;
  const probes = probesFor(sync, formatTimestamp(now));
  const refused = await Promise.all(
    probes.map(async ({ request }) =>
      (await isForbidden(probe, request)) ? guessMissingScope(request, rest.scopes) : [],
    ),
  );
  const missing = new Map<Stream, Set<string>>();
  for (const [at, { stream }] of probes.entries()) {
    const scopes = missing.get(stream) ?? new Set();
    for (const scope of refused[at] ?? []) missing.set(stream, scopes.add(scope));
  }
  const problems = [...missing].map(([stream, scopes]) =>
    scopeCheck.problem(
      `${stream} lacks ${[...scopes].join(" and ")}`,
      "ask the provider to add it to the client's profile, or deselect the stream under `sync`",
      exitCode.incomplete,
    ),
  );
  if (problems.length > 0) return problems;
  const withoutLive = probes.filter(
    ({ request, hasLiveFeed }) => hasLiveFeed && findMissingScopes(request, feed?.scopes).length > 0,
  );
  const scopes = [...new Set(withoutLive.flatMap(({ request }) => findMissingScopes(request, feed?.scopes)))];
  if (scopes.length > 0) {
    const message = `the websocket token lacks ${scopes.join(" and ")}: the daemon polls these ticks instead`;
    return [
      scopeCheck.warning(message, "ask the provider to add the scope for the websocket's audience too"),
    ];
  }
  return [scopeCheck.ok("the client may read everything that the settings select")];
}

async function isForbidden(
  { client, runWithTimeout }: ServiceProbe,
  request: ServiceRequest,
): Promise<boolean> {
  try {
    await runWithTimeout((signal) => client.request({ ...request, maxAttempts: 1, signal }, async () => {}));
    return false;
  } catch (error) {
    // The other checks report any other failure.
    return failureCode(error) === "forbidden";
  }
}

const isSelected = (selector: Selector) => selector.kind !== "none";

function probesFor(sync: Settings["sync"], timestamp: string): ScopeProbe[] {
  const probe = (stream: Stream, request: Omit<ServiceRequest, "endpoint">, asked = stream): ScopeProbe => ({
    stream,
    hasLiveFeed: streamTable[stream].event !== null,
    request: { endpoint: streamTable[asked].endpoint, ...request },
  });
  const history = (stream: HistoryStream, chosen: Settings["sync"]["ohlcv"]): ScopeProbe[] => {
    if (chosen === false) return [];
    const types = indexTypes.filter((type) => isSelected(chosen[type]));
    return types.map((indexType) => probe(stream, { query: { timestamp, size: 1, indexType } }));
  };
  const { exchangeTickers, marketCap, derivatives } = sync;
  const unknownId = "00000000-0000-0000-0000-000000000000";
  const snapshots = [
    exchangeTickers !== false &&
      isSelected(exchangeTickers.exchanges) &&
      isSelected(exchangeTickers.markets) &&
      probe("exchange_ticks", { query: { marketId: unknownId } }),
    marketCap !== false && probe("market_caps", { query: { assetId: unknownId } }),
    derivatives !== false &&
      isSelected(derivatives.exchanges) &&
      probe(
        "derivative_ticks",
        { params: { derivativeType: "futures" }, query: { exchangeId: unknownId } },
        "derivative_contracts",
      ),
  ];
  return [
    ...history("ohlcv", sync.ohlcv),
    ...history("index_ticks", sync.intraday),
    ...snapshots.filter((each) => each !== false),
  ];
}
