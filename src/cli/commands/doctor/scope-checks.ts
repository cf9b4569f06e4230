import type { Settings } from "../../../config/option-table.ts";
import { exitCode, Failure } from "../../../model/failure.ts";
import type { Selector } from "../../../model/selector.ts";
import { type HistoryStream, type Stream, streamTable } from "../../../model/streams.ts";
import { formatInstant, MICROS_PER_MS } from "../../../model/time.ts";
import type { Timely } from "../../../runtime/timeouts.ts";
import type { AccessToken } from "../../../service/auth/access-tokens.ts";
import { missingScopes } from "../../../service/auth/endpoint-access.ts";
import type { ServiceClient } from "../../../service/client/client.ts";
import { type Ask, scopeToBlame } from "../../../service/http/request.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

interface Need {
  readonly stream: Stream;
  readonly ask: Ask;
  /** The websocket brings it too, if its token allows. */
  readonly live: boolean;
}

/**
 * Per stream that the settings select: what the token lacks, and what the service refuses although the token has it. The
 * questions are the cheapest that there are; any answer but 403 will do.
 */
export async function checkScopes(
  client: ServiceClient,
  sync: Settings["sync"],
  rest: AccessToken,
  feed: AccessToken | undefined,
  timely: Timely,
): Promise<Finding[]> {
  const needs = needsOf(sync, formatInstant(Math.floor(client.serverNow() ?? 0) * MICROS_PER_MS));
  const refused = await Promise.all(
    needs.map(async ({ ask }) => {
      const lacking = missingScopes(ask, rest.scopes);
      if (lacking.length > 0) return lacking;
      return (await isForbidden(client, ask, timely)) ? scopeToBlame(ask, rest.scopes) : [];
    }),
  );
  const missing = new Map<Stream, Set<string>>();
  for (const [at, { stream }] of needs.entries()) {
    const scopes = missing.get(stream) ?? new Set();
    for (const scope of refused[at] ?? []) missing.set(stream, scopes.add(scope));
  }
  const problems = [...missing].map(([stream, scopes]) => lacks(stream, [...scopes]));
  if (problems.length > 0) return problems;
  const polled = needs.filter(({ ask, live }) => live && missingScopes(ask, feed?.scopes).length > 0);
  const scopes = [...new Set(polled.flatMap(({ ask }) => missingScopes(ask, feed?.scopes)))];
  if (scopes.length > 0) {
    const message = `the websocket token lacks ${scopes.join(" and ")}: those ticks are polled, not live`;
    return [warning("scopes", message, "have the scope added for the websocket's audience too")];
  }
  return [ok("scopes", "the client may read all that the settings select")];
}

function lacks(stream: Stream, scopes: readonly string[]): Finding {
  const failure = new Failure(`${stream} lacks ${scopes.join(" and ")}`, {
    family: "operator",
    code: "forbidden",
    remedy: "have it added to the client's profile, or do not select it under `sync`",
    exit: exitCode.incomplete,
  });
  return problem("scopes", failure);
}

async function isForbidden(client: ServiceClient, ask: Ask, timely: Timely): Promise<boolean> {
  try {
    await timely((signal) => client.request({ ...ask, attempts: 1, signal }, async () => {}));
    return false;
  } catch (error) {
    // What else may be wrong with the way to the service is the subject of the other checks.
    return error instanceof Failure && error.code === "forbidden";
  }
}

const asks = (selector: Selector) => selector.kind !== "none";

function needsOf(sync: Settings["sync"], timestamp: string): Need[] {
  const history = (stream: HistoryStream, chosen: Settings["sync"]["ohlcv"]): Need[] => {
    if (chosen === false) return [];
    const types = (["GWA", "MWA", "LX"] as const).filter((type) => asks(chosen[type]));
    const { endpoint, event } = streamTable[stream];
    return types.map((indexType) => ({
      stream,
      live: event !== null,
      ask: { endpoint, query: { timestamp, size: 1, indexType } },
    }));
  };
  const { exchangeTickers, marketCap, derivatives } = sync;
  const nowhere = "00000000-0000-0000-0000-000000000000";
  const tickers =
    exchangeTickers !== false && asks(exchangeTickers.exchanges) && asks(exchangeTickers.markets);
  return [
    ...history("ohlcv", sync.ohlcv),
    ...history("index_ticks", sync.intraday),
    ...(tickers
      ? [
          need(
            "exchange_ticks",
            { endpoint: streamTable.exchange_ticks.endpoint, query: { marketId: nowhere } },
            true,
          ),
        ]
      : []),
    ...(marketCap === false
      ? []
      : [need("market_caps", { endpoint: streamTable.market_caps.endpoint, query: { assetId: nowhere } })]),
    ...(derivatives === false || !asks(derivatives.exchanges)
      ? []
      : [need("derivative_ticks", contractsOf(nowhere))]),
  ];
}

function need(stream: Stream, ask: Ask, live = false): Need {
  return { stream, ask, live };
}

function contractsOf(exchangeId: string): Ask {
  return {
    endpoint: streamTable.derivative_contracts.endpoint,
    params: { derivativeType: "futures" },
    query: { exchangeId },
  };
}
