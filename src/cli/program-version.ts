import { readFileSync } from "node:fs";

/** As package.json says, which lies two folders above this file both in the source and in the built program. */
export function programVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  return manifest.version;
}
