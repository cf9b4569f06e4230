import type { SerialisedFailure } from "../../model/failure.ts";
import type { SharePeers, ShareRole } from "../../model/status/share-status.ts";
import type { WaitingReport } from "../server/session.ts";

/** What the thread needs to begin. The password travels separately, at each connection. */
export interface ShareThreadSettings {
  readonly warehouse: string;
  readonly url: string;
  readonly role: ShareRole;
  /** The name of this daemon, for people. */
  readonly name: string;
  readonly leaseSeconds: number;
}

export interface ShareCalls {
  /** Answered when the lease is given back. */
  stop(args: undefined): void;
}

/** What the thread requests from and reports to the main thread. */
export interface ShareHostCalls {
  readPassword(args: undefined): string | undefined;
  report(report: ShareReport): void;
}

export type ShareReport =
  /** Another daemon forwards; this one waits. */
  | { readonly kind: "standby"; readonly forwardedBy: string }
  | { readonly kind: "connected" }
  /** A pass has ended. `startedAt`: what was committed before is in the shared warehouse, in milliseconds since 1970. */
  | {
      readonly kind: "forwarded";
      readonly startedAt: number;
      readonly rows: number;
      readonly commits: number;
    }
  | WaitingReport
  /** Who works with the shared warehouse now. */
  | { readonly kind: "peers"; readonly peers: SharePeers }
  /** A warning that does not stop forwarding; empty: none. */
  | { readonly kind: "warning"; readonly message: string }
  /** So many more rows were forwarded; of the time that is planned so far, so much is done. */
  | {
      readonly kind: "rows";
      readonly rows: number;
      readonly doneMicros: number;
      readonly plannedMicros: number;
    }
  | { readonly kind: "failed"; readonly failure: SerialisedFailure };
