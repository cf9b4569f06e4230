import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { relationNotes } from "../../src/warehouse/schema/column-docs.ts";
import { openTestWarehouse, queryRows } from "../support/warehouse/open-warehouse.ts";
import { dictionaryFile, dictionaryPage } from "./dictionary-page.ts";

const ofOthers = ["__drizzle_migrations"];

describe("the dictionary", () => {
  it("has a meaning for every relation and column of the schema, in their order, and none that is not there", () => {
    const warehouse = openTestWarehouse();
    const relations = queryRows(
      warehouse,
      "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'",
    ).map(({ name }) => String(name));
    expect(Object.keys(relationNotes).sort()).toEqual(
      relations.filter((name) => !ofOthers.includes(name)).sort(),
    );
    for (const [name, { columns }] of Object.entries(relationNotes)) {
      const schema = queryRows(warehouse, "SELECT name, type FROM pragma_table_info(?)", name);
      expect([name, columns.map((column) => column.name)]).toEqual([
        name,
        schema.map((column) => column.name),
      ]);
      const declared = schema.filter(({ type }) => ["TEXT", "INTEGER", "REAL"].includes(String(type)));
      expect(columns).toEqual(
        expect.arrayContaining(declared.map((column) => expect.objectContaining(column))),
      );
    }
  });

  it("is the page in docs", () => {
    expect(readFileSync(dictionaryFile, "utf8"), "run `node test/docs/dictionary-page.ts`").toBe(
      dictionaryPage(),
    );
  });
});
