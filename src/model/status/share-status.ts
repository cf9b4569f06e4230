/** `alone`: one daemon forwards; `pair`: one of several that sync everything. */
export const shareRoles = ["alone", "pair"] as const;
export type ShareRole = (typeof shareRoles)[number];

/** A daemon that is connected to the shared warehouse. */
export interface ShareDaemon {
  readonly name: string;
  /** Where it connects from; null: through a socket of that machine, or the user may not read it. */
  readonly address: string | null;
  readonly is_forwarding: boolean;
}

/** A server that replays what PostgreSQL commits. All but the name is null where the user may not read it. */
export interface StandbyServer {
  readonly name: string;
  /** As PostgreSQL calls it: `streaming`, `catchup` … */
  readonly state: string | null;
  /** A commit waits for it. */
  readonly is_synchronous: boolean | null;
  readonly lag_seconds: number | null;
}

/** Who works with the shared warehouse, as PostgreSQL itself shows it. */
export interface SharePeers {
  /** The forwarding one first. */
  readonly daemons: readonly ShareDaemon[];
  /** Seconds since any daemon has forwarded a change; null: none ever did. */
  readonly forwarded_seconds_ago: number | null;
  readonly standby_servers: readonly StandbyServer[];
  /** What could not be read, with the remedy; null: everything was. */
  readonly unread: string | null;
}

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
  /** Null: unknown, because PostgreSQL cannot be asked. */
  readonly peers: SharePeers | null;
}

/** State, role and lag in a few words. */
export function describeShare(status: ShareStatus, formatAge: (seconds: number) => string): string {
  const { state, role, forwarded_by, lag_seconds } = status;
  const lag = lag_seconds === null ? "nothing forwarded yet" : `${formatAge(lag_seconds)} behind`;
  if (state === "standby") return `standby (${role}): ${forwarded_by || "another daemon"} forwards`;
  return role === "alone" ? `${state}, ${lag}` : `${state} (${role}), ${lag}`;
}

/** Every daemon, PostgreSQL and its standby servers, for people; empty while they are unknown. */
export function listShareParts({ peers, role, server }: ShareStatus, formatAge: (seconds: number) => string) {
  if (!peers) return [];
  const { daemons, standby_servers, forwarded_seconds_ago: ago, unread } = peers;
  const lag = ago === null ? "nothing forwarded yet" : `last change ${formatAge(ago)} ago`;
  const part = (what: string, name: string, ...state: (string | false | null)[]) => ({
    what,
    name,
    state: state.filter(Boolean).join(", "),
  });
  return [
    ...daemons.map(({ name, address, is_forwarding }) =>
      part("daemon", name, is_forwarding ? `forwards, ${lag}` : "stands by", address && `from ${address}`),
    ),
    ...(role === "pair" && daemons.length < 2 ? [part("daemon", "–", "no second daemon is connected")] : []),
    part(
      "PostgreSQL",
      server,
      unread ?? `${standby_servers.length > 0 ? "with" : "without"} a standby server`,
    ),
    ...standby_servers.map(({ name, state, is_synchronous, lag_seconds }) =>
      part(
        "standby server",
        name,
        state ?? "unknown",
        is_synchronous && "synchronous",
        lag_seconds !== null && `${formatAge(lag_seconds)} behind`,
      ),
    ),
  ];
}

/** Forwarding takes seconds; a lag of minutes means that it is stuck or cannot keep up. */
const MAX_SHARE_LAG_SECONDS = 300;

/** The status in a few words, for people; undefined while there is nothing to report. */
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

/** A client of the websocket of `mds-sync serve`, as the dashboard shows it. */
interface ConnectedClient {
  /** Empty without `serve.clients`. */
  readonly client_id: string;
  readonly address: string;
  readonly connected_at: string;
  readonly subscriptions: number;
  /** Messages sent to it. */
  readonly sent: number;
  /** It receives stored ticks, not the present. */
  readonly is_replay: boolean;
}

/** What was served so far, for the dashboard and the metrics. */
export interface ServeStatus {
  readonly address: string;
  readonly requests: number;
  /** Requests that were answered with 5xx. */
  readonly failures: number;
  /** Websocket messages sent. */
  readonly messages: number;
  /** Websocket clients that were dropped because they read too slowly. */
  readonly dropped: number;
  readonly clients: readonly ConnectedClient[];
}
