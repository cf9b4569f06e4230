import { Worker } from "node:worker_threads";
import { deserialiseFailure, type SerialisedFailure, serialiseFailure } from "../../model/failure.ts";
import type { ShareChange, ShareStatus } from "../../model/status/share-status.ts";
import { resolveSiblingModule } from "../../runtime/child-process.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { finishesWithin, raceAbort } from "../../runtime/timeouts.ts";
import type { HeldDaysRequest, HeldDaysResult } from "../held-days.ts";
import { threadEndedFailure } from "../server/postgres-errors.ts";
import { describePlace, parseServerAddress } from "../server/server-address.ts";
import type { ShareReport, ShareRequest, ShareThreadSettings } from "./share-messages.ts";

interface ShareThreadOptions extends ShareThreadSettings {
  /** Reads the password each time, so that a rotated one needs no restart. */
  readonly readPassword: () => string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly onFailure: (code: string, message: string) => void;
  /** Lets the sync follow another share. */
  readonly onFollow?: (change: ShareChange) => Promise<void>;
}

const CLOSE_TIMEOUT_MS = 2_000;
const RESTART_DELAY_MS = 10_000;
/** A first load of a large ledger needs memory; more ends this thread, not the daemon. */
const MAX_HEAP_MB = 512;

/** Forwards the warehouse in a thread of its own: commits and PONGs never wait for PostgreSQL. */
export class ShareThread {
  readonly #options: ShareThreadOptions;
  readonly #server: string;
  /** The database as the ledger names it. */
  readonly place: string;
  #worker: Worker | undefined;
  #state: ShareStatus["state"] = "connecting";
  #forwardedAt: number | undefined;
  #rows = 0;
  #lastError: string | null = null;
  #leases = 0;
  #forwardedBy: string | null = null;
  #isClosed = false;
  /** By number: who waits for an answer of the thread. */
  readonly #searches = new Map<number, PromiseWithResolvers<HeldDaysResult>>();
  #lastSearch = 0;

  constructor(options: ShareThreadOptions) {
    this.#options = options;
    this.place = describePlace(parseServerAddress(options.url));
    this.#server = this.place.replace("postgres://", "");
  }

  start(): void {
    const { warehouse, url, role, name, leaseSeconds, clock } = this.#options;
    if (this.#isClosed) return;
    const worker = new Worker(resolveSiblingModule("./share-worker", import.meta.url), {
      name: "share",
      workerData: { warehouse, url, role, name, leaseSeconds } satisfies ShareThreadSettings,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    this.#worker = worker;
    worker.on("message", (report: ShareReport) => this.#receive(report));
    worker.on("error", (error) => this.#fail({ message: error.message, code: "share_bug" }));
    worker.on("exit", () => {
      this.#worker = undefined;
      for (const search of this.#searches.values()) search.reject(threadEndedFailure());
      if (!this.#isClosed) clock.after(RESTART_DELAY_MS, () => this.start());
    });
  }

  status(): ShareStatus {
    const { name, role, clock } = this.#options;
    return {
      server: this.#server,
      name,
      role,
      state: this.#state,
      leases: this.#leases,
      forwarded_by: this.#forwardedBy,
      lag_seconds:
        this.#forwardedAt === undefined ? null : Math.max(0, clock.now() - this.#forwardedAt) / 1000,
      rows_forwarded: this.#rows,
      last_error: this.#lastError,
    };
  }

  /** Finds the days of index ticks that the SQLite file need not keep. */
  async findHeldDays(request: HeldDaysRequest, signal: AbortSignal): Promise<HeldDaysResult> {
    const { clock, readPassword } = this.#options;
    const password = readPassword();
    if (!this.#worker) throw threadEndedFailure();
    const id = ++this.#lastSearch;
    const search = Promise.withResolvers<HeldDaysResult>();
    this.#searches.set(id, search);
    const release = clock.beginWork();
    try {
      this.#send({ kind: "find-held", id, password, request });
      return await raceAbort(search.promise, signal);
    } finally {
      release();
      this.#searches.delete(id);
    }
  }

  /** Gives the lease back, so that another daemon can forward at once. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const worker = this.#worker;
    if (!worker) return;
    const exited = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
    this.#send({ kind: "stop" });
    if (!(await finishesWithin(this.#options.clock, CLOSE_TIMEOUT_MS, exited))) await worker.terminate();
  }

  #receive(report: ShareReport): void {
    const { log } = this.#options;
    const server = this.#server;
    switch (report.kind) {
      case "ask-password":
        this.#sendPassword();
        break;
      case "connected":
        log.info({ server, leases: report.leases }, "forwarding to the shared warehouse");
        this.#state = "forwarding";
        this.#lastError = null;
        this.#leases = report.leases;
        this.#forwardedBy = null;
        break;
      case "standby":
        log.info({ server, forwardedBy: report.forwardedBy }, "another daemon forwards");
        this.#state = "standby";
        this.#lastError = null;
        this.#leases = 0;
        this.#forwardedAt = undefined;
        this.#forwardedBy = report.forwardedBy;
        break;
      case "follow":
        void this.#follow(report.id, report.change);
        break;
      case "held":
        this.#searches.get(report.id)?.resolve(report.result);
        break;
      case "not-held":
        this.#searches.get(report.id)?.reject(deserialiseFailure(report.failure));
        break;
      case "rows":
        this.#rows += report.rows;
        break;
      case "forwarded":
        this.#forwardedAt = report.startedAt;
        this.#state = "current";
        if (report.rows > 0) log.debug({ rows: report.rows, commits: report.commits }, "rows forwarded");
        break;
      case "failed":
        this.#fail(report.failure);
        break;
    }
  }

  #sendPassword(): void {
    try {
      this.#send({ kind: "password", value: this.#options.readPassword() });
    } catch (error) {
      this.#send({ kind: "no-password", failure: serialiseFailure(error, "secret_unreadable") });
    }
  }

  async #follow(id: number, change: ShareChange): Promise<void> {
    const { onFollow, onFailure } = this.#options;
    await onFollow?.(change).catch((error: unknown) => onFailure("share_bug", String(error)));
    this.#send({ kind: "followed", id });
  }

  #fail(serialised: SerialisedFailure): void {
    const { log, onFailure } = this.#options;
    const { code, summary } = deserialiseFailure(serialised);
    if (code === "no_warehouse" || code === "older_warehouse") return;
    this.#state = "failing";
    this.#leases = 0;
    if (this.#lastError !== summary)
      log.warn({ code, server: this.#server, message: summary }, "forwarding failed");
    this.#lastError = summary;
    onFailure(code, summary);
  }

  #send(request: ShareRequest): void {
    this.#worker?.postMessage(request);
  }
}
