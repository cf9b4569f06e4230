import { hostname } from "node:os";
import { Failure } from "../model/failure.ts";
import type { ShareRole } from "../model/status/share-status.ts";
import type { LoadedSettings } from "./load-settings.ts";

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
