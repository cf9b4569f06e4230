import { afterAll } from "vitest";
import { removeConformingServer } from "../support/serve/conforming-server.ts";
import { testServe } from "../support/simulator/server-under-test.ts";

/* The tests of the specification that the simulator passes, run against `serve`. */
testServe();
afterAll(removeConformingServer);

await import("../simulator/rest/lookups.test.ts");
await import("../simulator/rest/tick-history.test.ts");
await import("../simulator/rest/bar-history.test.ts");
await import("../simulator/rest/exchange-tickers.test.ts");
await import("../simulator/rest/market-caps.test.ts");
await import("../simulator/rest/derivatives.test.ts");
await import("../simulator/rest/errors.test.ts");
await import("../simulator/rest/tokens.test.ts");
await import("../simulator/websocket/session.test.ts");
