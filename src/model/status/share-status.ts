/** `alone`: one daemon forwards; `pair`: one of several that sync everything. */
export const shareRoles = ["alone", "pair"] as const;
export type ShareRole = (typeof shareRoles)[number];

/** How forwarding to the shared warehouse goes. `--json` output and the dashboard contain it. */
export interface ShareStatus {
  /** `HOST:PORT/DATABASE`. */
  readonly server: string;
  readonly name: string;
  readonly role: ShareRole;
  /**
   * `forwarding`: what it lacks is being copied; `current`: it lacks nothing; `standby`: another daemon forwards;
   * `failing`: see `last_error`.
   */
  readonly state: "connecting" | "forwarding" | "current" | "standby" | "failing";
  /** The name of the daemon that forwards, if another one does. */
  readonly forwarded_by: string | null;
  /** Seconds since the moment up to which everything is forwarded; null: unknown, because nothing was forwarded yet. */
  readonly lag_seconds: number | null;
  readonly rows_forwarded: number;
  /** One line with its remedy, without secrets; null while it works. */
  readonly last_error: string | null;
}

/** State, role and lag in a few words. */
export function describeShare(status: ShareStatus, formatAge: (seconds: number) => string): string {
  const { state, role, forwarded_by, lag_seconds } = status;
  const lag = lag_seconds === null ? "nothing forwarded yet" : `${formatAge(lag_seconds)} behind`;
  if (state === "standby") return `standby (${role}): ${forwarded_by || "another daemon"} forwards`;
  return role === "alone" ? `${state}, ${lag}` : `${state} (${role}), ${lag}`;
}

/** Forwarding takes seconds; a lag of minutes means that it is stuck or cannot keep up. */
export const MAX_SHARE_LAG_SECONDS = 300;

/** The status in a few words, for people; undefined while there is nothing to tell. */
export function describeShareProblem(status: ShareStatus): string | undefined {
  const { last_error, lag_seconds, server } = status;
  const lag = lag_seconds === null ? "" : `, ${Math.round(lag_seconds)} s behind`;
  if (last_error !== null && status.state === "current")
    return `the shared warehouse ${server}: ${last_error}`;
  if (last_error !== null) return `not forwarded to the shared warehouse${lag}: ${last_error}`;
  if (lag_seconds !== null && lag_seconds > MAX_SHARE_LAG_SECONDS)
    return `the shared warehouse ${server} is ${Math.round(lag_seconds)} s behind`;
  return undefined;
}
