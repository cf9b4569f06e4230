import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import { exitCode, Failure } from "../../model/failure.ts";
import type { ServerName } from "./postgres-errors.ts";

/** Where the shared warehouse is. No property holds the password, so that logging this object is safe. */
export interface ServerAddress extends ServerName {
  readonly tls: "off" | "unverified" | "verified";
  readonly ssl: ConnectionOptions | false;
}

const loopback = /^(localhost|127\.\d+\.\d+\.\d+|::1|\[::1\]|)$/;
const modes: Readonly<Record<string, ServerAddress["tls"]>> = {
  disable: "off",
  require: "unverified",
  "verify-ca": "verified",
  "verify-full": "verified",
};

/** Parses `shared.url`. Without `sslmode`, other machines are reached through verified TLS only. */
export function parseServerAddress(url: string): ServerAddress {
  const parsed = new URL(url);
  const host = decodeURIComponent(parsed.hostname.replace(/^\[|\]$/g, "")) || "localhost";
  const mode = parsed.searchParams.get("sslmode") ?? (loopback.test(host) ? "disable" : "verify-full");
  const tls = modes[mode];
  if (tls === undefined)
    throw addressFailure(`sslmode ${mode} is not known`, `use ${Object.keys(modes).join(", ")}`);
  const ca = parsed.searchParams.get("sslrootcert");
  return {
    host,
    port: Number(parsed.port || 5432),
    database: decodeURIComponent(parsed.pathname.slice(1)),
    user: decodeURIComponent(parsed.username),
    tls,
    ssl:
      tls === "off"
        ? false
        : {
            rejectUnauthorized: tls === "verified",
            ...(ca === null ? {} : { ca: readCertificate(ca) }),
            ...(mode === "verify-ca" ? { checkServerIdentity: () => undefined } : {}),
          },
  };
}

/** The database as the ledger and messages name it: no user name, no password. */
export function describePlace({ host, port, database }: ServerName): string {
  return `postgres://${host}:${port}/${database}`;
}

function readCertificate(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw addressFailure(
      `the certificate file ${file} cannot be read`,
      "check sslrootcert and its permissions",
    );
  }
}

function addressFailure(what: string, remedy: string): Failure {
  return new Failure(`shared.url: ${what}`, { code: "settings", remedy, exit: exitCode.usage });
}
