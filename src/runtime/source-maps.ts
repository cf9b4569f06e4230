import { readFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { fileURLToPath } from "node:url";

/** A position in a built file, as a stack trace names it. */
const builtPosition = /(file:\/\/\/[^\s()]+\.js|\/[^\s():]+\.js):(\d+):(\d+)/g;

/**
 * Replaces the positions of a stack trace in built files by those in the sources. Reads the source maps when a trace is
 * printed, which is rare: Node's own support would read megabytes of them at each start.
 */
export function nameSources(stack: string): string {
  const maps = new Map<string, SourceMap | undefined>();
  return stack.replaceAll(builtPosition, (position, file: string, line: string, column: string) => {
    const map = maps.has(file) ? maps.get(file) : readSourceMap(file);
    maps.set(file, map);
    const origin = map?.findOrigin(Number(line), Number(column));
    if (!origin || !("fileName" in origin)) return position;
    return `${origin.fileName.replace(/^(?:\.\.\/)+/, "")}:${origin.lineNumber}:${origin.columnNumber}`;
  });
}

function readSourceMap(file: string): SourceMap | undefined {
  try {
    const path = file.startsWith("file:") ? fileURLToPath(file) : file;
    return new SourceMap(JSON.parse(readFileSync(`${path}.map`, "utf8")) as SourceMapPayload);
  } catch {
    return undefined;
  }
}

/** Names the sources in the trace of a crash, before Node prints it. */
export function nameSourcesOnCrash(): void {
  process.on("uncaughtExceptionMonitor", (error) => {
    if (error instanceof Error && error.stack !== undefined) error.stack = nameSources(error.stack);
  });
}
