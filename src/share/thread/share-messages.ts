import type { SerialisedFailure } from "../../model/failure.ts";
import type { ShareChange, ShareRole } from "../../model/status/share-status.ts";
import type { HeldDaysRequest, HeldDaysResult } from "../held-days.ts";

/** What the thread needs to begin. The password travels separately, at each connection. */
export interface ShareThreadSettings {
  readonly warehouse: string;
  readonly url: string;
  readonly role: ShareRole;
  readonly name: string;
  readonly leaseSeconds: number;
}

/** To the thread. */
export type ShareRequest =
  | { readonly kind: "password"; readonly value: string | undefined }
  /** It cannot be read. */
  | { readonly kind: "no-password"; readonly failure: SerialisedFailure }
  /** The share of this number is followed. */
  | { readonly kind: "followed"; readonly id: number }
  /** Find what may leave the SQLite file, and answer with this number. */
  | {
      readonly kind: "find-held";
      readonly id: number;
      readonly password: string | undefined;
      readonly request: HeldDaysRequest;
    }
  | { readonly kind: "stop" };

/** From the thread. */
export type ShareReport =
  | { readonly kind: "ask-password" }
  /** Follow this share from now on, and answer. */
  | { readonly kind: "follow"; readonly id: number; readonly change: ShareChange }
  | { readonly kind: "held"; readonly id: number; readonly result: HeldDaysResult }
  | { readonly kind: "not-held"; readonly id: number; readonly failure: SerialisedFailure }
  /** Another daemon forwards; this one waits. */
  | { readonly kind: "standby"; readonly forwardedBy: string }
  | { readonly kind: "connected"; readonly leases: number }
  /** A pass has ended. `startedAt`: what was committed before is in the shared warehouse, in milliseconds since 1970. */
  | {
      readonly kind: "forwarded";
      readonly startedAt: number;
      readonly rows: number;
      readonly commits: number;
    }
  /** So many more rows were forwarded. */
  | { readonly kind: "rows"; readonly rows: number }
  | { readonly kind: "failed"; readonly failure: SerialisedFailure };
