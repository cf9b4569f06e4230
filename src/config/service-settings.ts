import { Failure } from "../model/failure.ts";
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

const requiredSettings = ["baseUrl", "wsUrl", "clientId"] as const;

/** Throws if a required setting is missing; the message names all that are. */
export function requireServiceSettings({ settings, secret }: LoadedSettings): ServiceSettings {
  const { baseUrl, wsUrl, clientId, authUrl = baseUrl, ...rest } = settings.service;
  const missing: string[] = requiredSettings.filter((name) => settings.service[name] === undefined);
  const isSecretMissing = secret.origin === "not set";
  if (baseUrl === undefined || authUrl === undefined || wsUrl === undefined || !clientId || isSecretMissing) {
    throw unsetFailure([
      ...missing.map((name) => `service.${name}`),
      ...(isSecretMissing ? ["the client secret"] : []),
    ]);
  }
  return {
    baseUrl,
    authUrl,
    wsUrl,
    clientId,
    readSecret: async () => secret.read(),
    concurrency: rest.concurrency,
    maxRequestsPerSecond: rest.maxRequestsPerSecond,
    refreshSeconds: rest.refreshSeconds,
  };
}

function unsetFailure(names: readonly string[]): Failure {
  const variables = names.map(envNameOf);
  const verb = names.length > 1 ? "are" : "is";
  return new Failure(`${joinNames(names)} ${verb} not set`, {
    code: "service_unset",
    remedy: `set ${joinNames(variables)}, or name a settings file with --config`,
  });
}

function envNameOf(name: string): string {
  const known = requiredSettings.find((each) => name === `service.${each}`);
  return (known && optionTable.service[known].env) ?? "MDS_CLIENT_SECRET_FILE";
}

function joinNames(names: readonly string[]): string {
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names.join("");
}
