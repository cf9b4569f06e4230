import { prepareConformingServer } from "../support/serve/conforming-server.ts";
import { testServe } from "../support/simulator/server-under-test.ts";

/* The tests of the specification that the simulator passes, run against `serve`. */
testServe();
await prepareConformingServer();

await import("../api-server/lookups.test.ts");
await import("../api-server/tick-history.test.ts");
await import("../api-server/bar-history.test.ts");
await import("../api-server/exchange-tickers.test.ts");
await import("../api-server/market-caps.test.ts");
await import("../api-server/derivatives.test.ts");
await import("../api-server/errors.test.ts");
await import("../api-server/tokens.test.ts");
await import("../api-server/session.test.ts");
await import("../api-server/subscriptions.test.ts");
