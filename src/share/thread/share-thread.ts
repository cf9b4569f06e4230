import { deserialiseFailure, Failure, type SerialisedFailure } from "../../model/failure.ts";
import type { ShareStatus } from "../../model/status/share-status.ts";
import { resolveSiblingModule } from "../../runtime/child-process.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { Thread } from "../../runtime/thread.ts";
import { statusAtStart } from "../server/server-address.ts";
import type { ShareCalls, ShareHostCalls, ShareReport, ShareThreadSettings } from "./share-messages.ts";

interface ShareThreadOptions extends ShareThreadSettings {
  /** Reads the password each time, so that a rotated one needs no restart. */
  readonly readPassword: () => string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly onFailure: (code: string, message: string) => void;
}

const CLOSE_TIMEOUT_MS = 2_000;
const RESTART_DELAY_MS = 10_000;
/** A first load of a large ledger needs memory; more ends this thread, not the daemon. */
const MAX_HEAP_MB = 512;

/** Forwards the warehouse in a thread of its own: commits and PONGs never wait for PostgreSQL. */
export class ShareThread {
  readonly #options: ShareThreadOptions;
  readonly #thread: Thread<ShareCalls, ShareHostCalls>;
  #forwardedAt: number | undefined;
  /** PostgreSQL has not answered since then. */
  #waiting: { readonly since: number; readonly blockers: readonly string[] } | undefined;
  #status: ShareStatus;

  constructor(options: ShareThreadOptions) {
    const { warehouse, url, role, name, leaseSeconds, clock, log, readPassword } = options;
    this.#options = options;
    this.#status = statusAtStart(options);
    this.#thread = new Thread({
      name: "share",
      file: resolveSiblingModule("./share-worker", import.meta.url),
      workerData: { warehouse, url, role, name, leaseSeconds } satisfies ShareThreadSettings,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
      restartDelayMs: RESTART_DELAY_MS,
      bugCode: "share_bug",
      clock,
      log,
      handlers: {
        readPassword: (_, answer) => answer(readPassword()),
        report: (report) => this.#receive(report),
      },
      endFailure: () =>
        new Failure("forwarding to the shared warehouse has stopped for a moment", {
          code: "share_unreachable",
          remedy: "it starts again by itself; mds-sync status shows the reason",
        }),
      onEnd: (message) => this.#fail({ message, code: "share_bug" }),
    });
  }

  start(): Promise<void> {
    return this.#thread.start();
  }

  status(): ShareStatus {
    const secondsSince = (time: number) => Math.max(0, this.#options.clock.now() - time) / 1000;
    const waiting = this.#waiting;
    const blockers = waiting?.blockers.length ? `: ${waiting.blockers.join(", ")} has the lock` : "";
    return {
      ...this.#status,
      ...(this.#forwardedAt !== undefined && { lag_seconds: secondsSince(this.#forwardedAt) }),
      ...(waiting !== undefined && {
        state: this.#status.state === "current" ? "forwarding" : this.#status.state,
        last_error: `waiting for an answer for ${Math.round(secondsSince(waiting.since))} s${blockers}`,
      }),
    };
  }

  /** Gives the lease back, so that another daemon can forward at once. */
  close(): Promise<void> {
    return this.#thread.close(this.#thread.call("stop", undefined), CLOSE_TIMEOUT_MS);
  }

  #receive(report: ShareReport): void {
    const { log } = this.#options;
    const { server, rows_forwarded } = this.#status;
    this.#waiting = report.kind === "waiting" ? report : undefined;
    switch (report.kind) {
      case "waiting":
        break;
      case "peers":
        this.#update({ peers: report.peers });
        break;
      case "warning": {
        const { message } = report;
        if (message !== "" && message !== this.#status.last_error)
          log.warn({ server, message }, "shared warehouse needs attention");
        this.#update({ last_error: message || null });
        break;
      }
      case "connected":
        log.info({ server }, "forwarding to the shared warehouse");
        this.#update({ state: "forwarding", last_error: null, forwarded_by: null });
        break;
      case "standby":
        log.info({ server, forwardedBy: report.forwardedBy }, "another daemon forwards");
        this.#forwardedAt = undefined;
        this.#update({ state: "standby", last_error: null, forwarded_by: report.forwardedBy });
        break;
      case "rows":
        this.#update({ rows_forwarded: rows_forwarded + report.rows });
        break;
      case "forwarded":
        this.#forwardedAt = report.startedAt;
        this.#update({ state: "current" });
        if (report.rows > 0) log.debug({ rows: report.rows, commits: report.commits }, "rows forwarded");
        break;
      case "failed":
        this.#fail(report.failure);
        break;
    }
  }

  #fail(serialised: SerialisedFailure): void {
    const { log, onFailure } = this.#options;
    const { code, summary } = deserialiseFailure(serialised);
    if (code === "no_warehouse" || code === "older_warehouse") return;
    const { server, last_error } = this.#status;
    if (last_error !== summary) log.warn({ code, server, message: summary }, "forwarding failed");
    this.#update({ state: "failing", last_error: summary, peers: null });
    onFailure(code, summary);
  }

  #update(change: Partial<ShareStatus>): void {
    this.#status = { ...this.#status, ...change };
  }
}
