import { expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { researchViews } from "../../src/warehouse/views/research-views.ts";
import { usePostgres } from "../support/postgres.ts";
import { expectSameInBoth, shareInto } from "../support/share/share-harness.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { fillOddMarket } from "../support/warehouse/odd-market.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";

const server = usePostgres();

it("has the research views of the warehouse with the same rows", async () => {
  const database = await server.createDatabase();
  const path = `${temporaryFolder()}/mds.sqlite`;
  fillOddMarket(path);
  const warehouse = openTestWarehouse({ path, clock: systemClock });
  await shareInto(server, database, warehouse);
  for (const view of [...Object.keys(researchViews), "shared_names"])
    expect(await expectSameInBoth(server, database, warehouse, view), view).toBeGreaterThan(0);
});
