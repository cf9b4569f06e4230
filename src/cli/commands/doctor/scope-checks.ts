import type { Settings } from "../../../config/option-table.ts";
import { exitCode, failureCode } from "../../../model/failure.ts";
import type { Selector } from "../../../model/selector.ts";
import { indexTypes } from "../../../model/stream-columns.ts";
import { type HistoryStream, type Stream, streamTable } from "../../../model/streams.ts";
import { formatTimestamp, MICROS_PER_MS } from "../../../model/time.ts";
import type { AccessToken } from "../../../service/auth/access-tokens.ts";
import { findMissingScopes } from "../../../service/auth/parking.ts";
import { guessMissingScope, type ServiceRequest } from "../../../service/http/request.ts";
import { Check, type Finding, type ServiceProbe } from "./finding.ts";

const check = new Check("scopes");

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
export async function checkScopes(
  probe: ServiceProbe,
  sync: Settings["sync"],
  rest: AccessToken,
  feed: AccessToken | undefined,
): Promise<Finding[]> {
  const now = Math.floor(probe.client.serverNow() ?? 0) * MICROS_PER_MS;
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
    check.problem(
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
    return [check.warning(message, "ask the provider to add the scope for the websocket's audience too")];
  }
  return [check.ok("the client may read everything that the settings select")];
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
