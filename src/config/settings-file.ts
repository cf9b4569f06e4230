import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Document, LineCounter, parseDocument } from "yaml";
import { exitCode, Failure } from "../model/failure.ts";
import type { Raw } from "./option-types.ts";

export interface SettingsFile {
  readonly path: string;
  readonly content: { readonly [key: string]: Raw };
}

const SYSTEM_FILE = "/etc/mds-sync/mds-sync.yaml";

/** The file that the contract's order picks: the one named, else ./mds-sync.yaml, else the system's, else none. */
export function findSettingsFile(named: string | undefined, directory: string): SettingsFile | undefined {
  if (named !== undefined) return parseFile(named, readText(named) ?? missing(named));
  for (const path of [join(directory, "mds-sync.yaml"), SYSTEM_FILE]) {
    const text = readText(path);
    if (text !== undefined) return parseFile(path, text);
  }
  return undefined;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw badFile(`${path} cannot be read (${String(code)})`, "check the path and who may read it");
  }
}

function missing(path: string): never {
  throw badFile(`there is no settings file ${path}`, "check --config and MDS_CONFIG");
}

/**
 * Every scalar stays text (YAML's failsafe schema): what a value means is the option's to say. Errors name line and
 * column, never the line's content, which might be a secret in the wrong place.
 */
function parseFile(path: string, text: string): SettingsFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { schema: "failsafe", lineCounter: lines, prettyErrors: false });
  const problem = document.errors[0];
  if (problem) {
    const { line, col } = lines.linePos(problem.pos[0]);
    const hint =
      problem.code === "BAD_ALIAS" ? "put a value that begins with * into quotes" : "mend the YAML there";
    throw badFile(`${path}:${line}:${col} is not YAML (${problem.code})`, hint);
  }
  const content = plainContent(document);
  if (content === undefined) throw badFile(`${path} uses YAML aliases`, "write each value out");
  if (content === null || content === "") return { path, content: {} };
  if (typeof content !== "object" || Array.isArray(content)) {
    throw badFile(`${path} is not a mapping of settings`, "begin with a section such as service:");
  }
  return { path, content: content as SettingsFile["content"] };
}

/** Undefined where the document has aliases: ten lines of them can expand to gigabytes. */
function plainContent(document: Document): unknown {
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    if (error instanceof ReferenceError) return undefined;
    throw error;
  }
}

function badFile(message: string, remedy: string): Failure {
  return new Failure(message, { family: "operator", code: "settings_file", remedy, exit: exitCode.usage });
}
