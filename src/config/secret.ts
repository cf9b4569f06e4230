import { readFileSync, statSync } from "node:fs";
import { exitCode, Failure } from "../model/failure.ts";

/** Allowed, but probably a mistake. */
export interface SettingsWarning {
  readonly message: string;
  readonly remedy: string;
}

/** Where the client secret comes from. No property holds the secret, so logging this object is safe. */
export interface SecretSource {
  /** `file …`, `environment`, or `not set`. */
  readonly origin: string;
  /** For example that other users can read the file. */
  readonly warnings: readonly SettingsWarning[];
  /** Reads the file each time, so that a rotated secret needs no restart. */
  read(): string;
}

const OTHER_USERS_MODE = 0o007;

export function createSecretSource(
  file: string | undefined,
  fromEnvironment: string | undefined,
): SecretSource {
  if (fromEnvironment) return environmentSecret(fromEnvironment);
  if (file) return fileSecret(file);
  return {
    origin: "not set",
    warnings: [],
    read: () =>
      failSecretMissing("no client secret is set", "set MDS_CLIENT_SECRET_FILE or MDS_CLIENT_SECRET"),
  };
}

function environmentSecret(secret: string): SecretSource {
  // The closure holds the secret: neither JSON.stringify nor util.inspect shows it.
  return { origin: "environment", warnings: [], read: () => secret.trim() };
}

function fileSecret(file: string): SecretSource {
  const read = () => {
    let secret: string;
    try {
      secret = readFileSync(file, "utf8").trim();
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : "unreadable";
      return failSecretMissing(
        `the secret file ${file} cannot be read (${code})`,
        "check service.clientSecretFile and the file's permissions",
      );
    }
    return secret || failSecretMissing(`the secret file ${file} is empty`, "write the client secret into it");
  };
  return { origin: `file ${file}`, warnings: fileModeWarnings(file), read };
}

function fileModeWarnings(file: string): readonly SettingsWarning[] {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
  return mode & OTHER_USERS_MODE
    ? [{ message: `the secret file ${file} can be read by other users`, remedy: `chmod o= ${file}` }]
    : [];
}

function failSecretMissing(message: string, remedy: string): never {
  throw new Failure(message, { code: "secret_missing", remedy, exit: exitCode.usage });
}
