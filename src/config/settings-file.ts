import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Document, LineCounter, parseDocument } from "yaml";
import { errorCode, Failure } from "../model/failure.ts";
import type { RawValue } from "./option-types.ts";

export interface SettingsFile {
  readonly path: string;
  readonly content: { readonly [key: string]: RawValue };
}

const SYSTEM_SETTINGS_PATH = "/etc/mds-sync/mds-sync.yaml";

/** Reads the file at `explicitPath`, else ./mds-sync.yaml, else the system's file, else none. */
export function findSettingsFile(
  explicitPath: string | undefined,
  directory: string,
): SettingsFile | undefined {
  if (explicitPath !== undefined)
    return parseSettingsFile(explicitPath, readTextIfExists(explicitPath) ?? failMissingFile(explicitPath));
  for (const path of [join(directory, "mds-sync.yaml"), SYSTEM_SETTINGS_PATH]) {
    const text = readTextIfExists(path);
    if (text !== undefined) return parseSettingsFile(path, text);
  }
  return undefined;
}

function readTextIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = errorCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw settingsFileFailure(
      `${path} cannot be read (${code})`,
      "check the path and the file's permissions",
    );
  }
}

function failMissingFile(path: string): never {
  throw settingsFileFailure(`there is no settings file ${path}`, "check --config and MDS_CONFIG");
}

/**
 * Every scalar stays text (YAML's failsafe schema); the options parse it. Errors name line and column, never the
 * content, which might be a misplaced secret.
 */
function parseSettingsFile(path: string, text: string): SettingsFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { schema: "failsafe", lineCounter: lines, prettyErrors: false });
  const problem = document.errors[0];
  if (problem) {
    const { line, col } = lines.linePos(problem.pos[0]);
    const hint =
      problem.code === "BAD_ALIAS" ? "put a value that begins with * into quotes" : "fix the YAML there";
    throw settingsFileFailure(`${path}:${line}:${col} is not YAML (${problem.code})`, hint);
  }
  const content = toPlainContent(document);
  if (content === undefined) throw settingsFileFailure(`${path} uses YAML aliases`, "write each value out");
  if (content === null || content === "") return { path, content: {} };
  if (typeof content !== "object" || Array.isArray(content)) {
    throw settingsFileFailure(
      `${path} is not a mapping of settings`,
      "begin with a section such as service:",
    );
  }
  return { path, content: content as SettingsFile["content"] };
}

/** Undefined if the document has aliases: ten lines of them can expand to gigabytes. */
function toPlainContent(document: Document): unknown {
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    if (error instanceof ReferenceError) return undefined;
    throw error;
  }
}

function settingsFileFailure(message: string, remedy: string): Failure {
  return new Failure(message, { code: "settings_file", remedy });
}
