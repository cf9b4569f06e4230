import { hostname } from "node:os";
import { Failure } from "../model/failure.ts";
import type { ShareRole } from "../model/status/share-status.ts";
import type { LoadedSettings } from "./load-settings.ts";
import { optionTable } from "./option-table.ts";

/** The settings that a client of the service needs, all of them set. */
export interface ServiceSettings {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly wsUrl: string;
  readonly clientId: string;
  /** Reads the secret each time, so that a rotated secret needs no restart. */
  readonly readSecret: () => Promise<string>;
  readonly concurrency: number;
  readonly maxRequestsPerSecond: number;
  readonly refreshSeconds: number;
}

/** Throws if a required setting is missing; the message names all that are. */
export function requireServiceSettings({ settings, secret }: LoadedSettings): ServiceSettings {
  const { baseUrl, wsUrl, clientId, authUrl = baseUrl } = settings.service;
  const { concurrency, maxRequestsPerSecond, refreshSeconds } = settings.service;
  const isSecretSet = secret.origin !== "not set";
  if (baseUrl === undefined || authUrl === undefined || wsUrl === undefined || !clientId || !isSecretSet)
    throw unsetFailure([
      ...(["baseUrl", "wsUrl", "clientId"] as const).flatMap((name) =>
        settings.service[name] ? [] : [{ name: `service.${name}`, env: optionTable.service[name].env ?? "" }],
      ),
      ...(isSecretSet ? [] : [{ name: "the client secret", env: "MDS_CLIENT_SECRET_FILE" }]),
    ]);
  const limits = { concurrency, maxRequestsPerSecond, refreshSeconds };
  return { ...limits, baseUrl, authUrl, wsUrl, clientId, readSecret: async () => secret.read() };
}

function unsetFailure(missing: readonly { readonly name: string; readonly env: string }[]): Failure {
  const list = (key: "name" | "env") =>
    new Intl.ListFormat("en-GB").format(missing.map((setting) => setting[key]));
  return new Failure(`${list("name")} ${missing.length > 1 ? "are" : "is"} not set`, {
    code: "service_unset",
    remedy: `set ${list("env")}, or name a settings file with --config`,
  });
}

/** The settings of the shared warehouse, all of them set. */
export interface SharedSettings {
  readonly url: string;
  readonly role: ShareRole;
  readonly name: string;
  readonly leaseSeconds: number;
  /** Reads the password each time, so that a rotated one needs no restart; undefined: none is set. */
  readonly readPassword: () => string | undefined;
}

/** Undefined: there is no shared warehouse. */
export function findSharedSettings({ settings, sharedPassword }: LoadedSettings): SharedSettings | undefined {
  const { url, role, name, leaseSeconds } = settings.shared;
  if (url === "") return undefined;
  return {
    url,
    role,
    name: name || hostname(),
    leaseSeconds,
    readPassword: () => (sharedPassword.origin === "not set" ? undefined : sharedPassword.read()),
  };
}

export function requireSharedSettings(loaded: LoadedSettings): SharedSettings {
  const found = findSharedSettings(loaded);
  if (found) return found;
  throw new Failure("shared.url is not set", {
    code: "share_unset",
    remedy: "set MDS_SHARED_URL to the PostgreSQL database, for example postgres://user@host:5432/database",
  });
}
