import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { RelationNote } from "../../src/warehouse/schema/column-doc.ts";
import { relationGroups } from "../../src/warehouse/schema/column-docs.ts";

export const dictionaryFile = resolve(import.meta.dirname, "../../docs/dictionary.md");

const opening = `# Every relation and column

Made from the notes in \`src/warehouse/notes-*.ts\` by \`node test/docs/dictionary-page.ts\`; a test fails when this page or the
notes are out of step with the schema. \`mds-sync query --schema NAME\` tells the same.

Types are SQLite's own: TEXT, INTEGER, REAL; booleans are 0 and 1. Moments are INTEGER microseconds since 1970 UTC (\`ts\`,
\`*_ts\`) or TEXT \`YYYY-MM-DDTHH:MM:SS.ffffffZ\` (\`time\`, \`*_time\`, \`*_at\`), which sort and compare as they are. Ranges are
\`[from, to)\`. A decimal has two columns: a REAL to calculate with, and \`NAME_exact\` with every digit. The
[cookbook](cookbook.md) shows them at work.`;

/** The page, whole. */
export function dictionaryPage(): string {
  const groups = relationGroups.map(({ title, notes }) =>
    [
      `## ${title}`,
      ...(title === "Inside"
        ? ["What the views are made of. Only `series` is meant to be joined; the rest may change."]
        : []),
      ...Object.entries(notes).map(([name, note]) => section(name, note)),
    ].join("\n\n"),
  );
  return `${[opening, ...groups].join("\n\n")}\n`;
}

function section(name: string, { summary, columns }: RelationNote): string {
  const rows = columns.map((column) => `| \`${column.name}\` | ${column.type} | ${column.meaning} |`);
  return [
    `### ${name}`,
    "",
    `${capital(summary)}.`,
    "",
    "| column | type | meaning |",
    "|---|---|---|",
    ...rows,
  ].join("\n");
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

if (import.meta.main) writeFileSync(dictionaryFile, dictionaryPage());
