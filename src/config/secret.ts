import { readFileSync, statSync } from "node:fs";
import { exitCode, Failure } from "../model/failure.ts";

/** Where the client secret comes from. It is read when it is needed and kept nowhere; printing this shows no secret. */
export interface SecretSource {
  /** For people: `file …`, `environment`, or `not set`. */
  readonly origin: string;
  /** What an operator should know about how the secret is kept. */
  readonly warnings: readonly string[];
  /** Reads it anew each time, so that a rotated file heals without a restart. */
  read(): string;
}

const OTHERS = 0o007;

export function secretSource(file: string | undefined, fromEnvironment: string | undefined): SecretSource {
  if (fromEnvironment) return environmentSecret(fromEnvironment);
  if (file) return fileSecret(file);
  return {
    origin: "not set",
    warnings: [],
    read: () => raise("no client secret is set", "set MDS_CLIENT_SECRET_FILE or MDS_CLIENT_SECRET"),
  };
}

function environmentSecret(secret: string): SecretSource {
  // A closure, not a property: neither JSON nor util.inspect can reach the text.
  return { origin: "environment", warnings: [], read: () => secret.trim() };
}

function fileSecret(file: string): SecretSource {
  const read = () => {
    let secret: string;
    try {
      secret = readFileSync(file, "utf8").trim();
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : "unreadable";
      return raise(
        `the secret file ${file} cannot be read (${code})`,
        "check service.clientSecretFile and who may read it",
      );
    }
    return secret || raise(`the secret file ${file} is empty`, "write the client secret into it");
  };
  return { origin: `file ${file}`, warnings: looseModes(file), read };
}

function looseModes(file: string): readonly string[] {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
  return mode & OTHERS ? [`the secret file ${file} can be read by other users: chmod o= ${file}`] : [];
}

function raise(message: string, remedy: string): never {
  throw new Failure(message, { family: "operator", code: "secret_missing", remedy, exit: exitCode.usage });
}
