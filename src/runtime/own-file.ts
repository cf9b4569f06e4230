import { fileURLToPath } from "node:url";

/** The path of a file of ours beside the one that asks, by the name that it has there: run in place as TypeScript, or built. */
export function ownFile(name: string, asker: string): string {
  return fileURLToPath(new URL(`${name}${asker.endsWith(".ts") ? ".ts" : ".js"}`, asker));
}
