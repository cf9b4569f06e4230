import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { recordService } from "../../../src/warehouse/lookups/service-identity.ts";
import { createWarehouse, standardContent } from "../../support/cli/filled-warehouse.ts";
import { runInChild } from "../../support/cli/run-command.ts";

describe("mds-sync run --demo", () => {
  it("F19: refuses the warehouse of another service with exit 2, and stores nothing in it", async () => {
    const path = createWarehouse((transaction) => {
      standardContent(transaction);
      recordService(transaction, "", {
        url: "https://prod.test",
        stream: "assets",
        ids: ["btc-id", "eth-id"],
      });
    });
    const { stderr, status } = await runInChild(["run", "--demo", "--warehouse", path, "--http-port", "0"]);
    expect(stderr).toContain(`${path} has the data of https://prod.test`);
    expect(status).toBe(2);
    const database = new Database(path, { readonly: true });
    expect(database.prepare("SELECT count(*) FROM assets").pluck().get()).toBe(5);
    expect(database.prepare("SELECT service_url FROM warehouse_state").pluck().get()).toBe(
      "https://prod.test",
    );
    database.close();
  });
});
