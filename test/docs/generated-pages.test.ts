import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { dictionaryFile, dictionaryPage } from "../../scripts/dictionary-page.ts";
import { findUndocumented, libraryFile, libraryPage } from "../../scripts/library-page.ts";
import { relationDocs } from "../../src/warehouse/schema/column-docs.ts";
import { openTestWarehouse, queryRows } from "../support/warehouse/open-warehouse.ts";

const ofOthers = ["__drizzle_migrations"];

describe("the dictionary", () => {
  it("documents every relation and column of the schema, those of views in their order, and no other", () => {
    const warehouse = openTestWarehouse({ hasAllViews: true });
    const relations = queryRows(
      warehouse,
      "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'",
    ).map(({ name }) => String(name));
    expect(Object.keys(relationDocs).sort()).toEqual(
      relations.filter((name) => !ofOthers.includes(name)).sort(),
    );
    const views = queryRows(warehouse, "SELECT name FROM sqlite_master WHERE type = 'view'").map(
      ({ name }) => name,
    );
    for (const [name, { columns }] of Object.entries(relationDocs)) {
      const schema = queryRows(warehouse, "SELECT name, type FROM pragma_table_info(?)", name);
      // A migration appends its columns to a table, wherever the stream table has them.
      const ordered = (names: unknown[]) => (views.includes(name) ? names : names.toSorted());
      expect([name, ordered(columns.map((column) => column.name))]).toEqual([
        name,
        ordered(schema.map((column) => column.name)),
      ]);
      const declared = schema.filter(({ type }) => ["TEXT", "INTEGER", "REAL"].includes(String(type)));
      expect(columns).toEqual(
        expect.arrayContaining(declared.map((column) => expect.objectContaining(column))),
      );
    }
  });

  it("equals docs/dictionary.md", () => {
    expect(readFileSync(dictionaryFile, "utf8"), "run `npm run docs`").toBe(dictionaryPage());
  });
});

describe("the page of the library", () => {
  it("equals docs/library.md", () => {
    expect(readFileSync(libraryFile, "utf8"), "run `npm run docs`").toBe(libraryPage());
  });

  it("has a comment for every declaration", () => {
    expect(findUndocumented()).toEqual([]);
  });
});
