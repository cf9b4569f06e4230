import type { SerialisedFailure } from "../../model/failure.ts";

/** What the thread needs to begin. The password travels separately, at each connection. */
export interface ShareThreadSettings {
  readonly warehouse: string;
  readonly url: string;
  readonly name: string;
  readonly leaseSeconds: number;
}

/** To the thread. */
export type ShareRequest =
  | { readonly kind: "password"; readonly value: string | undefined }
  | { readonly kind: "stop" };

/** From the thread. */
export type ShareReport =
  | { readonly kind: "ask-password" }
  | { readonly kind: "connected" }
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
