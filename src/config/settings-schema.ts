import { optionEntries, toggleGroupPaths } from "./option-table.ts";
import type { JsonSchema } from "./option-types.ts";

interface GroupNode {
  readonly properties: Record<string, GroupNode | JsonSchema>;
}

/** The JSON Schema of the settings file: editors complete its keys and mark mistakes. */
export function buildSettingsSchema(): JsonSchema {
  const root: GroupNode = { properties: {} };
  for (const { path, option } of optionEntries) {
    const parts = path.split(".");
    let node = root;
    for (const part of parts.slice(0, -1)) {
      node.properties[part] ??= { properties: {} };
      node = node.properties[part] as GroupNode;
    }
    const written = option.defaultValue === undefined ? "" : option.format(option.defaultValue);
    const description = written === "" ? option.help : `${option.help}; default: ${written}`;
    node.properties[parts.at(-1) ?? ""] = { ...option.schema, description };
  }
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Settings of mds-sync",
    ...toSchema(root, ""),
  };
}

function toSchema(node: GroupNode, path: string): JsonSchema {
  const properties = Object.fromEntries(
    Object.entries(node.properties).map(([key, child]) => {
      const childPath = path === "" ? key : `${path}.${key}`;
      return [key, isGroup(child) ? toSchema(child, childPath) : child];
    }),
  );
  const group = { type: "object", properties, additionalProperties: false };
  return toggleGroupPaths.includes(path) ? { anyOf: [group, { const: false }] } : group;
}

/** Options that are mappings have `properties` too, and always a `type`. */
function isGroup(node: GroupNode | JsonSchema): node is GroupNode {
  return !("description" in node);
}
