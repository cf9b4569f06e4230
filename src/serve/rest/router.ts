import type { Micros } from "../../model/time.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { serveContract, serveContracts, serveDerivativeTickers } from "./derivatives.ts";
import { serveHistory } from "./history.ts";
import { isLookup, serveLookup, serveLookupEntry } from "./lookups.ts";
import { ServeError } from "./serve-error.ts";
import type { ServeResponse } from "./serve-response.ts";
import { serveExchangeTickers, serveMarketCaps } from "./snapshots.ts";

interface RestRequest {
  /** Below `/v3`, as received. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly scopes: ReadonlySet<string>;
  /** By the service's clock. */
  readonly now: Micros;
}

/** Answers a GET request below `/v3` from the warehouse. Throws a ServeError. */
export function serveRequest(connection: Connection, request: RestRequest): ServeResponse {
  const { path, query, scopes, now } = request;
  const [resource = "", ...rest] = path.split("/").slice(1).map(decodeSegment);
  const require = (scope: string) => {
    if (!scopes.has(scope)) throw new ServeError(403, `The scope ${scope} is missing`);
  };
  if (isLookup(resource)) {
    const [id] = rest;
    if (rest.length === 1 && id) return serveLookupEntry(connection, resource, id);
    if (rest.length === 0) return serveLookup(connection, resource, query);
  }
  if (rest.length === 0) {
    switch (resource) {
      case "index-ticker":
        return serveHistory(connection, { stream: "index_ticks", query, scopes, now });
      case "ohlcv":
        return serveHistory(connection, { stream: "ohlcv", query, scopes, now });
      case "exchange-ticker":
        require("read:exchange-ticker");
        return serveExchangeTickers(connection, query, now);
      case "market-cap":
        require("read:market-cap");
        return serveMarketCaps(connection, query, now);
    }
  }
  if (resource === "derivatives") {
    require("read:derivatives");
    const [kind, type = "", id = ""] = rest;
    if (kind === "contract" && rest.length === 2) return serveContracts(connection, type, query, now);
    if (kind === "contract" && rest.length === 3) return serveContract(connection, type, id);
    if (kind === "ticker" && rest.length === 2) return serveDerivativeTickers(connection, type, query, now);
  }
  throw new ServeError(404, `No path /v3${path}`);
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new ServeError(400, "The path is not percent-encoded UTF-8");
  }
}
