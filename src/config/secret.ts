import { readFileSync, statSync } from "node:fs";
import { errorCode, Failure } from "../model/failure.ts";

/** Allowed, but probably a mistake. */
export interface SettingsWarning {
  readonly message: string;
  readonly remedy: string;
}

/** Where a secret comes from. No property holds the secret, so logging this object is safe. */
export interface SecretSource {
  /** `file …`, `environment`, or `not set`. */
  readonly origin: string;
  /** For example that other users can read the file. */
  readonly warnings: readonly SettingsWarning[];
  /** Reads the file each time, so that a rotated secret needs no restart. */
  read(): string;
}

const OTHER_USERS_MODE = 0o007;

/** What the operator calls a secret, and where it is set. */
interface SecretNames {
  readonly what: string;
  readonly setting: string;
  /** The variable that holds the secret itself; the one that names its file ends in `_FILE`. */
  readonly variable: string;
}

export const clientSecret: SecretNames = {
  what: "client secret",
  setting: "service.clientSecretFile",
  variable: "MDS_CLIENT_SECRET",
};
export const sharedPassword: SecretNames = {
  what: "password of the shared warehouse",
  setting: "shared.passwordFile",
  variable: "MDS_SHARED_PASSWORD",
};

export function createSecretSource(
  file: string | undefined,
  fromEnvironment: string | undefined,
  names = clientSecret,
): SecretSource {
  // The closure holds the secret: neither JSON.stringify nor util.inspect shows it.
  if (fromEnvironment) return { origin: "environment", warnings: [], read: () => fromEnvironment.trim() };
  if (file) return fileSecret(file, names);
  const { what, variable } = names;
  return {
    origin: "not set",
    warnings: [],
    read: () => failSecretMissing(`no ${what} is set`, `set ${variable}_FILE or ${variable}`),
  };
}

function fileSecret(file: string, { what, setting }: SecretNames): SecretSource {
  const read = () => {
    let secret: string;
    try {
      secret = readFileSync(file, "utf8").trim();
    } catch (error) {
      const code = errorCode(error);
      if (code === "EISDIR")
        return failSecretMissing(
          `the secret file ${file} is a folder`,
          `name the file with the ${what} in ${setting}`,
        );
      return failSecretMissing(
        `the secret file ${file} cannot be read (${code})`,
        `check ${setting} and the file's permissions`,
      );
    }
    return secret || failSecretMissing(`the secret file ${file} is empty`, `write the ${what} into it`);
  };
  return { origin: `file ${file}`, warnings: fileModeWarnings(file), read };
}

function fileModeWarnings(file: string): readonly SettingsWarning[] {
  const found = statSync(file, { throwIfNoEntry: false });
  // People paste the remedy, and other programs need a folder or a device such as /tmp or /dev/stdin.
  if (!found?.isFile() || !(found.mode & OTHER_USERS_MODE)) return [];
  const quoted = `'${file.replaceAll("'", `'\\''`)}'`;
  return [{ message: `the secret file ${file} can be read by other users`, remedy: `chmod o= ${quoted}` }];
}

function failSecretMissing(message: string, remedy: string): never {
  throw new Failure(message, { code: "secret_missing", remedy });
}
