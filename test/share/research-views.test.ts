import { expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { researchViews } from "../../src/warehouse/views/research-views.ts";
import { usePostgres } from "../support/postgres.ts";
import { openShared } from "../support/share/share-harness.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { fillOddMarket } from "../support/warehouse/odd-market.ts";

const server = usePostgres();

it("has the research views of the warehouse with the same rows", async () => {
  const path = `${temporaryFolder()}/mds.sqlite`;
  fillOddMarket(path);
  const { forward, expectSame } = await openShared(server, { path, clock: systemClock });
  await forward();
  for (const view of [...Object.keys(researchViews), "shared_names"])
    expect(await expectSame(view), view).toBeGreaterThan(0);
});
