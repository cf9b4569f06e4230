import { expect, it, vi } from "vitest";
import { readSmallRelation } from "../../../src/warehouse/read/forwarded-rows.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

it("a log that grows is read by one prepared statement, wherever the last reading ended", () => {
  const { connection } = openTestWarehouse();
  const prepare = vi.spyOn(connection.database, "prepare");
  for (let after = 0; after < 10; after++)
    readSmallRelation(connection, "sqlite_master", ["rootpage"], { after, limit: 100 });
  expect(prepare).toHaveBeenCalledTimes(1);
});
