/** `retry`: passes with time. `operator`: a person must act, as the remedy says. `bug`: a defect of this program. */
type FailureFamily = "retry" | "operator" | "bug";

/** What the sync does about a failure. */
export type SyncReaction =
  /** Ends the run, because all other work would fail too. */
  | "stop"
  /** Like `stop`, and ends the process: only a new process or an operator can give the warehouse a writer again. */
  | "end_process"
  /** Skips everything that needs the scope that the profile lacks. */
  | "forbidden"
  /** The service does not have what was requested; the caller decides what follows. */
  | "not_found"
  /** Retries later. A failed try counts towards the limit only if other requests succeeded meanwhile. */
  | "retry"
  /** Like `retry`, but every failed try counts, because the service answered with something unusable. */
  | "retry_limited"
  /** Skips this work until the next run. */
  | "give_up"
  /** Like `give_up`, for every other request to the same endpoint too. */
  | "give_up_endpoint";

/** Cron jobs and service managers depend on these. */
export const exitCode = {
  ok: 0,
  unexpected: 1,
  usage: 2,
  credentials: 3,
  incomplete: 4,
  tryLater: 75,
} as const;
export type ExitCode = (typeof exitCode)[keyof typeof exitCode];

interface FailurePolicy {
  /** The default; `FailureOptions.family` overrides it. */
  readonly family: FailureFamily;
  readonly sync: SyncReaction;
  /** Default: 75 for `retry`, else 1. */
  readonly exit?: ExitCode;
}

/** Every failure code. Codes are stable across releases: metrics, logs and `--json` output contain them. */
const failurePolicies = {
  // The warehouse and its file
  db_corrupt: { family: "operator", sync: "end_process" },
  db_locked: { family: "retry", sync: "stop" },
  db_not_writable: { family: "operator", sync: "end_process" },
  db_replaced: { family: "operator", sync: "end_process" },
  db_unreadable: { family: "operator", sync: "give_up", exit: exitCode.usage },
  disk_full: { family: "retry", sync: "stop" },
  foreign_database: { family: "operator", sync: "give_up", exit: exitCode.usage },
  ingest_bug: { family: "bug", sync: "stop" },
  ingest_died: { family: "bug", sync: "end_process" },
  io_error: { family: "operator", sync: "end_process" },
  killed: { family: "operator", sync: "give_up" },
  network_file_system: { family: "operator", sync: "give_up", exit: exitCode.usage },
  newer_warehouse: { family: "operator", sync: "give_up", exit: exitCode.usage },
  no_temporary_files: { family: "operator", sync: "give_up" },
  no_thread: { family: "operator", sync: "give_up" },
  no_warehouse: { family: "operator", sync: "give_up" },
  not_a_warehouse: { family: "operator", sync: "give_up", exit: exitCode.usage },
  other_service: { family: "operator", sync: "stop", exit: exitCode.usage },
  not_opened: { family: "retry", sync: "retry" },
  old_node: { family: "operator", sync: "give_up", exit: exitCode.usage },
  older_warehouse: { family: "operator", sync: "give_up", exit: exitCode.usage },
  pragma_refused: { family: "operator", sync: "give_up" },
  writer_elsewhere: { family: "retry", sync: "retry" },
  writer_replaced: { family: "operator", sync: "end_process" },
  // Credentials and scopes
  auth_failed: { family: "operator", sync: "give_up_endpoint" },
  auth_malformed: { family: "retry", sync: "retry" },
  auth_undecided: { family: "retry", sync: "retry" },
  auth_unreachable: { family: "retry", sync: "retry" },
  credentials_rejected: { family: "operator", sync: "stop", exit: exitCode.credentials },
  forbidden: { family: "operator", sync: "forbidden" },
  index_forbidden: { family: "operator", sync: "forbidden" },
  secret_missing: { family: "operator", sync: "stop", exit: exitCode.usage },
  secret_unreadable: { family: "operator", sync: "stop", exit: exitCode.credentials },
  // The network
  answer_cut: { family: "retry", sync: "retry" },
  bad_address: { family: "operator", sync: "give_up", exit: exitCode.usage },
  connect_timeout: { family: "retry", sync: "retry" },
  connection_lost: { family: "retry", sync: "retry" },
  connection_refused: { family: "retry", sync: "retry" },
  dns_failed: { family: "retry", sync: "retry" },
  network_failed: { family: "retry", sync: "retry" },
  network_unreachable: { family: "retry", sync: "retry" },
  proxy_failed: { family: "retry", sync: "retry" },
  service_unreachable: { family: "retry", sync: "retry" },
  timeout: { family: "retry", sync: "retry" },
  tls_failed: { family: "retry", sync: "retry" },
  too_many_files: { family: "retry", sync: "retry" },
  // Responses of the service
  alarm: { family: "retry", sync: "retry_limited" },
  conflict: { family: "retry", sync: "retry_limited" },
  denied: { family: "retry", sync: "retry" },
  endpoint_failing: { family: "retry", sync: "give_up_endpoint", exit: exitCode.incomplete },
  doubtful_list: { family: "retry", sync: "retry_limited" },
  malformed_body: { family: "retry", sync: "retry_limited" },
  no_list: { family: "retry", sync: "give_up" },
  not_found: { family: "operator", sync: "not_found", exit: exitCode.incomplete },
  null_list: { family: "retry", sync: "retry_limited" },
  pagination_cycle: { family: "retry", sync: "retry_limited", exit: exitCode.incomplete },
  redirect_refused: { family: "operator", sync: "give_up", exit: exitCode.incomplete },
  rejected: { family: "operator", sync: "give_up", exit: exitCode.incomplete },
  server_failure: { family: "retry", sync: "retry" },
  stale_response: { family: "retry", sync: "retry_limited" },
  too_many_requests: { family: "retry", sync: "retry" },
  torn_list: { family: "retry", sync: "retry_limited" },
  unproven: { family: "retry", sync: "retry_limited" },
  upstream_version: { family: "retry", sync: "retry", exit: exitCode.incomplete },
  withdrawal_unconfirmed: { family: "retry", sync: "retry_limited" },
  // The run as a whole
  gave_up: { family: "retry", sync: "stop" },
  stopped: { family: "operator", sync: "stop" },
  // The shared warehouse
  share_blocked: { family: "retry", sync: "retry" },
  share_bug: { family: "bug", sync: "give_up" },
  share_changed: { family: "retry", sync: "retry" },
  share_fenced: { family: "retry", sync: "retry" },
  share_foreign: { family: "operator", sync: "give_up", exit: exitCode.usage },
  share_full: { family: "retry", sync: "retry" },
  share_held: { family: "retry", sync: "retry" },
  share_newer: { family: "operator", sync: "give_up", exit: exitCode.usage },
  share_older: { family: "operator", sync: "give_up", exit: exitCode.usage },
  share_no_rights: { family: "operator", sync: "give_up", exit: exitCode.usage },
  share_read_only: { family: "retry", sync: "retry" },
  share_refused: { family: "operator", sync: "give_up", exit: exitCode.usage },
  share_tls: { family: "operator", sync: "give_up", exit: exitCode.usage },
  share_too_old: { family: "operator", sync: "give_up", exit: exitCode.usage },
  share_unreachable: { family: "retry", sync: "retry" },
  share_unset: { family: "operator", sync: "give_up", exit: exitCode.usage },
  // Settings and commands
  backup_bug: { family: "bug", sync: "stop" },
  backup_refused: { family: "operator", sync: "give_up", exit: exitCode.usage },
  bad_query: { family: "operator", sync: "give_up", exit: exitCode.usage },
  copy_damaged: { family: "operator", sync: "give_up" },
  demo: { family: "bug", sync: "stop" },
  export_bug: { family: "bug", sync: "stop" },
  export_elsewhere: { family: "retry", sync: "retry" },
  export_refused: { family: "operator", sync: "give_up" },
  export_unreachable: { family: "retry", sync: "retry" },
  http_port: { family: "operator", sync: "give_up", exit: exitCode.usage },
  incomplete: { family: "operator", sync: "give_up", exit: exitCode.incomplete },
  no_greeting: { family: "retry", sync: "retry" },
  not_readable: { family: "retry", sync: "retry" },
  not_whole: { family: "operator", sync: "give_up", exit: exitCode.incomplete },
  nothing_synced: { family: "operator", sync: "give_up", exit: exitCode.incomplete },
  serve_bug: { family: "bug", sync: "stop" },
  service_unset: { family: "operator", sync: "give_up", exit: exitCode.usage },
  settings: { family: "operator", sync: "give_up", exit: exitCode.usage },
  settings_file: { family: "operator", sync: "give_up", exit: exitCode.usage },
  too_many: { family: "retry", sync: "retry" },
  unknown_series: { family: "operator", sync: "give_up", exit: exitCode.usage },
  unwell: { family: "operator", sync: "give_up" },
  usage: { family: "operator", sync: "give_up", exit: exitCode.usage },
} as const satisfies Record<string, FailurePolicy>;

type FixedFailureCode = keyof typeof failurePolicies;
export type FailureCode = FixedFailureCode | `http_${number}`;

/** For all `http_…` codes. */
const unexpectedStatus: FailurePolicy = { family: "operator", sync: "give_up" };

export function policyOf(code: FailureCode): FailurePolicy {
  const isFixed = (each: FailureCode): each is FixedFailureCode => Object.hasOwn(failurePolicies, each);
  return isFixed(code) ? failurePolicies[code] : unexpectedStatus;
}

export interface FailureOptions {
  code: FailureCode;
  /** Overrides the family of the code's policy. */
  family?: FailureFamily;
  /** What the operator should do, in one sentence. */
  remedy?: string;
  exit?: ExitCode;
  cause?: unknown;
}

/** The error class that modules throw on purpose. Its message never contains a secret. */
export class Failure extends Error {
  readonly family: FailureFamily;
  readonly code: FailureCode;
  readonly remedy: string | undefined;
  readonly exit: ExitCode;

  constructor(message: string, details: FailureOptions) {
    super(message, { cause: details.cause });
    this.name = "Failure";
    this.code = details.code;
    const policy = policyOf(details.code);
    this.family = details.family ?? policy.family;
    this.remedy = details.remedy;
    const usualExit = this.family === "retry" ? exitCode.tryLater : exitCode.unexpected;
    this.exit = details.exit ?? (this.family === policy.family ? policy.exit : undefined) ?? usualExit;
  }

  /** Message and remedy in one line, for the operator. */
  get summary(): string {
    return this.remedy ? `${this.message}: ${this.remedy}` : this.message;
  }
}

/** The operator or the caller gave something wrong: a flag, an argument, an option. */
export const usageFailure = (message: string, remedy: string) =>
  new Failure(message, { code: "usage", remedy });

/** The code of a failure; `unexpected` for any other error. */
export function failureCode(error: unknown): FailureCode | "unexpected" {
  return error instanceof Failure ? error.code : "unexpected";
}

/** The code that Node, SQLite or PostgreSQL gave an error; empty if it has none. */
export function errorCode(error: unknown): string {
  const isCoded = typeof error === "object" && error !== null && "code" in error;
  return isCoded && typeof error.code === "string" ? error.code : "";
}

/** A failure that can be sent to another thread or process. */
export interface SerialisedFailure extends Omit<FailureOptions, "cause"> {
  readonly message: string;
  readonly stack?: string | undefined;
}

/** Any error that is not a `Failure` becomes a `bug` with the code `bugCode`. */
export function serialiseFailure(error: unknown, bugCode: FailureCode): SerialisedFailure {
  if (error instanceof Failure) {
    const { message, family, code, remedy, exit } = error;
    return { message, family, code, exit, ...(remedy === undefined ? {} : { remedy }) };
  }
  const isError = error instanceof Error;
  return {
    message: isError ? error.message : String(error),
    stack: isError ? error.stack : undefined,
    code: bugCode,
  };
}

export function deserialiseFailure({ message, stack, ...details }: SerialisedFailure): Failure {
  const failure = new Failure(message, details);
  if (stack !== undefined) failure.stack = stack;
  return failure;
}

const systemErrorRemedies: Readonly<Record<string, string>> = {
  EAGAIN: "raise the limit of threads (TasksMax, ulimit -u), or add memory",
  EMFILE: "raise the limit of open files (LimitNOFILE, ulimit -n)",
  ENFILE: "raise the system's limit of open files (fs.file-max)",
};

/** The system refused to start a thread. The operator can raise the limit, so this is not a bug. */
export function threadStartFailure(error: unknown): Failure {
  const text = error instanceof Error ? error.message : String(error);
  const code = /\bE[A-Z]+\b/.exec(text)?.[0] ?? text;
  return new Failure(`cannot start a thread (${code})`, {
    code: "no_thread",
    remedy: systemErrorRemedies[code],
    cause: error,
  });
}
