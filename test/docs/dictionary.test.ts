import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { dictionaryFile, dictionaryPage, map } from "../../scripts/dictionary-page.ts";
import { relationDocs, relationGroups } from "../../src/warehouse/schema/column-docs.ts";
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

  it("has a map with every relation for users but the forms of another, and no other", () => {
    const internal = relationGroups.find(({ title }) => title === "Internal tables")?.docs ?? {};
    const forms = /^latest_|_slim$|_by_day$|_spans$|^bars_(5m|15m|1h|4h)$|^status_changes$|^unknown_events$/;
    const expected = Object.keys(relationDocs).filter((name) => !(name in internal) && !forms.test(name));
    const words = new Set(map.match(/[a-z_\d]+/g));
    expect(expected.filter((name) => !words.has(name))).toEqual([]);
    const unknown = [...words].filter((word) => word.includes("_") && !(word in relationDocs));
    expect(unknown).toEqual([]);
  });

  it("equals docs/dictionary.md", () => {
    expect(readFileSync(dictionaryFile, "utf8"), "run `npm run docs`").toBe(dictionaryPage());
  });
});
