import { errorCode, Failure, type FailureCode } from "../../model/failure.ts";

/** The server as messages name it: without user name and password. */
export interface ServerName {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
}

/** What became of a statement: its code, what the server does, and what to do about it. */
type Translation = readonly [code: FailureCode, what: string, remedy: string];

const later = "nothing is lost: the rest is forwarded once that works";

const refused = ({ user }: ServerName): Translation => [
  "share_refused",
  `does not accept the password of ${user}`,
  "set MDS_SHARED_PASSWORD_FILE or MDS_SHARED_PASSWORD, and check pg_hba.conf",
];

const readOnly: Translation = [
  "share_read_only",
  "accepts no writes: it is a standby, or default_transaction_read_only is on",
  `let shared.url name the primary (too), or reset that setting of the user; ${later}`,
];

const full: Translation = ["share_full", "has no space left", `free or add disk space there; ${later}`];

const unreachable = (reason: string): Translation => [
  "share_unreachable",
  `cannot be reached (${reason})`,
  `check shared.url, the network and the server; ${later}`,
];

/** By SQLSTATE; see PostgreSQL's appendix A. */
const byState: Readonly<Record<string, (server: ServerName) => Translation>> = {
  "28000": refused,
  "28P01": refused,
  "42501": ({ user, database }) => [
    "share_no_rights",
    `gives ${user} too few rights`,
    `let a superuser run GRANT CREATE, CONNECT ON DATABASE "${database}" TO "${user}"; if schema mds exists, make ${user} the owner of it and of its tables`,
  ],
  "25006": () => readOnly,
  "53100": () => full,
  "53300": () => [
    "share_unreachable",
    "has no free connection",
    `raise max_connections, or the limit of the database or user; ${later}`,
  ],
  "55P03": () => ["share_blocked", "did not give a lock in time", `it is tried again; ${later}`],
  "3D000": ({ database }) => [
    "share_refused",
    `has no database ${database}`,
    `create it there: CREATE DATABASE "${database}"`,
  ],
};

/** No schema, no relation, or a month's table that is there without being attached. */
const droppedStates = /^(3F000|42P01|42P07)$/;
const droppedError = /^no partition of relation|could not open relation with OID|cache lookup failed/;
/** Deadlocks, cancelled statements and ended sessions. */
const interruptedStates = /^(40|55|57014|57P01)/;
/** Connection failures, shutdowns, and limits of the server that pass. */
const passingStates = /^(08|57P|53|58)/;
/** Names of system errors, and of what a broken socket or TLS session throws. */
const tlsError = /CERT|TLS|SSL|self.signed|ALTNAME/i;

/** Turns what the driver throws into a Failure. Neither messages nor causes contain the password. */
export function toShareFailure(error: unknown, server: ServerName): Failure {
  return error instanceof Failure ? error : serverFailure(server, translate(error, server));
}

export function serverFailure({ host, port }: ServerName, [code, what, remedy]: Translation): Failure {
  return new Failure(`PostgreSQL at ${host}:${port} ${what}`, { code, remedy });
}

export function schemaFailure({ host, port }: ServerName, [code, what, remedy]: Translation): Failure {
  return new Failure(`schema mds at ${host}:${port} ${what}`, { code, remedy });
}

function translate(error: unknown, server: ServerName): Translation {
  const state = errorCode(error);
  const message = error instanceof Error ? error.message : String(error);
  const known = byState[state]?.(server);
  if (known) return known;
  if (droppedStates.test(state) || droppedError.test(message))
    return [
      "share_changed",
      `lacks a part of schema mds that someone has dropped or detached (${message})`,
      "it is made or attached again, and what is lacking is forwarded; readers may need a GRANT again",
    ];
  // It gave up this statement or session; the next attempt may succeed.
  if (interruptedStates.test(state) && state.length === 5)
    return [
      "share_unreachable",
      `ended a statement of this daemon (${message})`,
      `an administrator, a restart or another mds-sync that takes over does that; it is tried again; ${later}`,
    ];
  if (/no space left|could not (extend|write|fsync)/i.test(message)) return full;
  if (passingStates.test(state) && state.length === 5) return unreachable(message);
  if (/SASL|password must be a string/.test(message)) return refused(server);
  if (/does not support SSL/.test(message))
    return [
      "share_tls",
      "offers no TLS",
      "set ssl = on there, or sslmode=disable in shared.url if the network is private",
    ];
  if (tlsError.test(state) || tlsError.test(message))
    return [
      "share_tls",
      `failed the TLS check (${state || message})`,
      "check the server's certificate, sslmode and sslrootcert in shared.url, and NODE_EXTRA_CA_CERTS",
    ];
  if (state.length === 5 && /^[0-9A-Z]{5}$/.test(state) && !/^E[A-Z]{4}$/.test(state))
    return ["share_bug", `rejected a statement (${state}: ${message})`, "please report it"];
  return unreachable(state || message);
}

export const readOnlyFailure = (server: ServerName) => serverFailure(server, readOnly);

/** None of several servers accepts writes: names each of them. */
export function noWritableFailure(reasons: readonly unknown[]): Failure {
  const failures = reasons.map((reason) =>
    reason instanceof Failure ? reason : new Failure(String(reason), { code: "share_bug" }),
  );
  // The failure of a server that answers explains more than that of one that does not.
  const [main] = failures.toSorted(
    (a, b) => Number(a.code === "share_unreachable") - Number(b.code === "share_unreachable"),
  );
  const message = failures.map((failure) => failure.message).join("; ");
  if (!main || main.code === "share_read_only")
    return new Failure(message, { code: "share_read_only", remedy: `promote a standby; ${later}` });
  return new Failure(message, { code: main.code, remedy: main.remedy ?? later, exit: main.exit });
}

/** Someone keeps a transaction open that has a lock which a statement needs. */
export function blockedFailure(server: ServerName, blockers: readonly string[]): Failure {
  return serverFailure(server, [
    "share_blocked",
    `does not give a lock in schema mds: ${blockers.join(", ") || "another session"} has it`,
    `let its transaction end, or end it with pg_terminate_backend; it is tried again; ${later}`,
  ]);
}

/** A pool in transaction mode hides which session is whose. */
export function pooledFailure({ host, port }: ServerName): Failure {
  return new Failure(`at ${host}:${port} a pool gives each transaction another connection to PostgreSQL`, {
    code: "share_refused",
    remedy: "connect to PostgreSQL itself, or set pool_mode = session for this database",
  });
}

/** Schema `mds` belongs to someone else. */
export function foreignSchemaFailure(server: ServerName, names: readonly string[]): Failure {
  return schemaFailure(server, [
    "share_foreign",
    `was not made by mds-sync, and has relations of the same names: ${names.join(", ")}`,
    "rename that schema, or let shared.url name another database; nothing was changed there",
  ]);
}

export function fencedFailure(): Failure {
  return new Failure("another mds-sync has taken over the shared warehouse", {
    code: "share_fenced",
    remedy: "stop one of the two, or give each its own database; this one tries again later",
  });
}
