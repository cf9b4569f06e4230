import { createInterface } from "node:readline";

/** The environment variables that `mds-sync simulate` prints for its clients. */
export async function readClientSettings(stdout: NodeJS.ReadableStream): Promise<Record<string, string>> {
  const env: Record<string, string> = {};
  for await (const line of createInterface({ input: stdout })) {
    const [, name = "", value = ""] = /^([A-Z_]+)=(.*)$/.exec(line) ?? [];
    env[name] = value;
    if (name === "MDS_CLIENT_SECRET") break;
  }
  return env;
}
