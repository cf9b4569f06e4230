import { exitCode, Failure } from "../model/failure.ts";
import type { LoadedSettings } from "./load-settings.ts";
import { optionTable } from "./option-table.ts";

/** What a client of the service needs of the settings; nothing of it is left open. */
export interface ServiceSettings {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly wsUrl: string;
  readonly clientId: string;
  /** Read anew each time, so that a rotated secret is picked up. */
  readonly readSecret: () => Promise<string>;
  readonly concurrency: number;
  readonly maxRequestsPerSecond: number;
  readonly refreshSeconds: number;
}

const needed = ["baseUrl", "wsUrl", "clientId"] as const;

/** The service's settings, or one line that names everything that is not set. */
export function requireServiceSettings({ settings, secret }: LoadedSettings): ServiceSettings {
  const { baseUrl, wsUrl, clientId, authUrl = baseUrl, ...rest } = settings.service;
  const missing: string[] = needed.filter((name) => settings.service[name] === undefined);
  const noSecret = secret.origin === "not set";
  if (baseUrl === undefined || authUrl === undefined || wsUrl === undefined || !clientId || noSecret) {
    throw unset([...missing.map((name) => `service.${name}`), ...(noSecret ? ["the client secret"] : [])]);
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

function unset(names: readonly string[]): Failure {
  const variables = names.map(variableOf);
  const verb = names.length > 1 ? "are" : "is";
  return new Failure(`${inWords(names)} ${verb} not set`, {
    family: "operator",
    code: "service_unset",
    remedy: `set ${inWords(variables)}, or name a settings file with --config`,
    exit: exitCode.usage,
  });
}

function variableOf(name: string): string {
  const known = needed.find((each) => name === `service.${each}`);
  return (known && optionTable.service[known].env) ?? "MDS_CLIENT_SECRET_FILE";
}

function inWords(names: readonly string[]): string {
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names.join("");
}
