import { hostname } from "node:os";
import { Failure } from "../model/failure.ts";
import type { LoadedSettings } from "./load-settings.ts";
import { optionNames } from "./option-table.ts";

export type ServiceSettings = ReturnType<typeof requireServiceSettings>;

/** The settings that a client of the service needs. Throws if one is missing; the message names all that are. */
export function requireServiceSettings({ settings, secret }: LoadedSettings) {
  const { baseUrl, wsUrl, clientId, authUrl = baseUrl } = settings.service;
  const { concurrency, maxRequestsPerSecond, refreshSeconds } = settings.service;
  const isSecretSet = secret.origin !== "not set";
  if (baseUrl === undefined || authUrl === undefined || wsUrl === undefined || !clientId || !isSecretSet)
    throw unsetFailure([
      ...(["baseUrl", "wsUrl", "clientId"] as const).flatMap((name) =>
        settings.service[name] ? [] : [{ name: `service.${name}`, env: optionNames[`service.${name}`].env }],
      ),
      ...(isSecretSet ? [] : [{ name: "the client secret", env: "MDS_CLIENT_SECRET_FILE" }]),
    ]);
  const limits = { concurrency, maxRequestsPerSecond, refreshSeconds };
  // Reads the secret each time, so that a rotated one needs no restart.
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

export type SharedSettings = NonNullable<ReturnType<typeof findSharedSettings>>;

/** The settings of the shared warehouse; undefined: there is none. */
export function findSharedSettings({ settings, sharedPassword }: LoadedSettings) {
  const { url, role, name, leaseSeconds } = settings.shared;
  if (url === "") return undefined;
  return {
    url,
    role,
    name: name || hostname(),
    leaseSeconds,
    /** Reads the password each time, so that a rotated one needs no restart; undefined: none is set. */
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
