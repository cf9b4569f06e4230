import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import { Failure } from "../../model/failure.ts";
import { isLoopback, listServerUrls } from "../../model/service-url.ts";
import type { ShareStatus } from "../../model/status/share-status.ts";
import type { ServerName } from "./postgres-errors.ts";

/** Where the shared warehouse is. No property holds the password, so that logging this object is safe. */
export interface ServerAddress {
  /** A primary and its standbys: whichever accepts writes. */
  readonly servers: readonly ServerName[];
  readonly database: string;
  readonly user: string;
  readonly tls: "off" | "unverified" | "verified";
  readonly ssl: ConnectionOptions | false;
}

const modes: Readonly<Record<string, ServerAddress["tls"]>> = {
  disable: "off",
  require: "unverified",
  "verify-ca": "verified",
  "verify-full": "verified",
};

/** Parses `shared.url`. Without `sslmode`, other machines are reached through verified TLS only. */
export function parseServerAddress(url: string): ServerAddress {
  const urls = listServerUrls(url);
  const parsed = urls?.[0];
  if (!urls || !parsed)
    throw addressFailure(
      "is not an address",
      "give postgres://user@host:5432/database, without the password",
    );
  const database = decodeURIComponent(parsed.pathname.slice(1));
  const user = decodeURIComponent(parsed.username);
  const servers = urls.map((each): ServerName => {
    const host = decodeURIComponent(each.hostname.replace(/^\[|\]$/g, ""));
    return { host, port: Number(each.port || 5432), database, user };
  });
  const isLocal = servers.every(({ host }) => host === "" || isLoopback({ hostname: host }));
  const mode = parsed.searchParams.get("sslmode") ?? (isLocal ? "disable" : "verify-full");
  const tls = modes[mode];
  if (tls === undefined)
    throw addressFailure(`sslmode ${mode} is not known`, `use ${Object.keys(modes).join(", ")}`);
  const ca = parsed.searchParams.get("sslrootcert");
  return {
    servers,
    database,
    user,
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

/** Before anything is known of PostgreSQL. */
export function statusAtStart({
  url,
  role,
  name,
}: Pick<ShareStatus, "role" | "name"> & { readonly url: string }): ShareStatus {
  const { servers, database } = parseServerAddress(url);
  const names = servers.map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`);
  return {
    // No user name, no password.
    server: `${names.join(",")}/${database}`,
    name,
    role,
    state: "connecting",
    forwarded_by: null,
    lag_seconds: null,
    rows_forwarded: 0,
    last_error: null,
    peers: null,
  };
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
  return new Failure(`shared.url: ${what}`, { code: "settings", remedy });
}
