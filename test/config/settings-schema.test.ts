import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { optionEntries } from "../../src/config/option-table.ts";
import { buildSettingsSchema } from "../../src/config/settings-schema.ts";

interface Schema {
  readonly properties?: Record<string, Schema>;
  readonly anyOf?: readonly Schema[];
  readonly description?: string;
  readonly additionalProperties?: boolean;
}

/** The schema of one setting; groups that may be `false` are one of two forms. */
function schemaOf(path: string): Schema | undefined {
  return path
    .split(".")
    .reduce<Schema | undefined>(
      (node, key) => (node?.properties ?? node?.anyOf?.[0]?.properties)?.[key],
      buildSettingsSchema() as Schema,
    );
}

describe("the JSON Schema of the settings", () => {
  it("describes every setting, and allows no other", () => {
    for (const { path, option } of optionEntries)
      expect(schemaOf(path)?.description, path).toContain(option.help);
    for (const group of ["service", "http", "sync"])
      expect(schemaOf(group)?.additionalProperties).toBe(false);
    expect(schemaOf("service.concurrency")).toMatchObject({ type: "integer", minimum: 1, maximum: 64 });
    expect(schemaOf("sync.ohlcv")?.anyOf?.[1]).toEqual({ const: false });
  });

  it("knows every key of the shipped settings file", () => {
    const file = resolve(import.meta.dirname, "../../config/mds-sync.yaml");
    const shipped = parse(readFileSync(file, "utf8").replaceAll(/^# ?(?= *\w+:)/gm, "")) as object;
    const visit = (node: object, prefix: string) => {
      for (const [key, value] of Object.entries(node)) {
        const schema = schemaOf(prefix + key);
        expect(schema, prefix + key).toBeDefined();
        const isGroup = schema?.properties !== undefined || schema?.anyOf?.[0]?.properties !== undefined;
        if (isGroup && typeof value === "object" && value !== null) visit(value, `${prefix}${key}.`);
      }
    };
    visit(shipped, "");
  });
});
