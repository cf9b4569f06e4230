import type { ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { PassThrough, type Readable } from "node:stream";
import { toErrorAnswer } from "../../model/answers/query.ts";
import { deserialiseFailure, Failure } from "../../model/failure.ts";
import type { Micros } from "../../model/time.ts";
import { readResidentBytes, resolveSiblingModule, startChildProcess } from "../../runtime/child-process.ts";
import type { Cancel, Clock } from "../../runtime/clock.ts";
import type { QueryMessage, QueryTask } from "./query-process.ts";
import { parseQueryRequest, type QueryRequest, type ResultFormat, replacedFailure } from "./query-request.ts";

interface QueryRunnerOptions {
  readonly path: string;
  readonly clock: Pick<Clock, "after" | "beginWork">;
  /** By the service's clock: relative times refer to it. */
  readonly now: () => Micros;
  /** How long a statement may run from its first step to its first bytes, and from then on without further ones. */
  readonly timeoutMs?: number;
  /** The module that runs a query. Default: the one beside this. */
  readonly processFile?: string;
}

interface RunningResult {
  /** `lines`: the rows read so far, a line each time, and at last `rows` or the failure as a line. */
  readonly format: ResultFormat | "lines";
  readonly result: Readable;
}

const QUERY_TIMEOUT_MS = 30_000;
/** Of the process, up to the statement's first step: a busy machine needs long for it. */
const START_TIMEOUT_MS = 120_000;
const MAX_QUERIES = 3;
/** Limits of the JavaScript heap and of the process: SQLite sorts in memory outside of the heap. */
const MAX_HEAP_MB = 192;
const MAX_RESIDENT_BYTES = 768 * 1024 * 1024;
const MEMORY_CHECK_INTERVAL_MS = 250;
/** How long a process waits for the next query. */
const SPARE_TIMEOUT_MS = 120_000;

/** A statement failed; the warnings about its plan may say why. */
export class QueryFailure extends Failure {
  readonly warnings: readonly string[];

  constructor(failure: Failure, warnings: readonly string[]) {
    const { message, code, family, remedy, exit } = failure;
    super(message, { code, family, exit, ...(remedy === undefined ? {} : { remedy }), cause: failure });
    this.warnings = warnings;
  }
}

/**
 * Runs SQL that people write, each statement in a process of low priority. A process can be killed at any moment; a thread
 * ends only when SQLite returns, which for a bad join takes hours.
 */
export class QueryRunner {
  readonly #options: QueryRunnerOptions;
  readonly #running = new Set<() => void>();
  #spare: ChildProcess | undefined;
  #cancelSpare: Cancel = () => {};
  #isClosed = false;

  constructor(options: QueryRunnerOptions) {
    this.#options = options;
  }

  /** Answers a request of a page, which is JSON, once the first bytes exist. Kills the process when `signal` aborts. */
  async answer(body: string, signal: AbortSignal): Promise<RunningResult> {
    const request = parseQueryRequest(body, this.#options.now());
    if (this.#running.size >= MAX_QUERIES)
      throw new Failure(`${MAX_QUERIES} queries are running`, {
        code: "too_many",
        remedy: "wait for one, or cancel it",
      });
    return new Promise((resolve, reject) => this.#start(request, signal, resolve, reject));
  }

  /** Files that queries left beside the warehouse when the daemon was killed. */
  removeLeftFolders(): void {
    const { folder, prefix } = this.#workPlace();
    // Earlier versions used the shorter name.
    const isLeft = (name: string) =>
      [prefix, ".query-"].some((start) => name.startsWith(start) && name.length === start.length + 6);
    const names = existsSync(folder) ? readdirSync(folder) : [];
    for (const name of names.filter(isLeft)) rmSync(join(folder, name), { recursive: true, force: true });
  }

  /** Beside the warehouse: the one place that the daemon may write to in every installation. */
  #workPlace(): { readonly folder: string; readonly prefix: string } {
    const { path } = this.#options;
    return { folder: dirname(path), prefix: `.query-${basename(path)}-` };
  }

  close(): void {
    this.#isClosed = true;
    for (const kill of this.#running) kill();
    this.#endSpare();
  }

  #startProcess(): ChildProcess {
    const { processFile = resolveSiblingModule("./query-process", import.meta.url) } = this.#options;
    return startChildProcess(processFile, { maxHeapMb: MAX_HEAP_MB });
  }

  /** The spare process, or a new one: starting takes longer than most queries. */
  #takeProcess(): ChildProcess {
    const spare = this.#spare;
    this.#spare = undefined;
    this.#cancelSpare();
    return spare ?? this.#startProcess();
  }

  /** Starts a process for the next query, which people send soon or not at all. */
  #keepSpare(): void {
    if (this.#isClosed || this.#spare) return;
    const spare = this.#startProcess();
    this.#spare = spare;
    spare.once("exit", () => {
      if (this.#spare === spare) this.#spare = undefined;
    });
    spare.on("error", () => {});
    this.#cancelSpare = this.#options.clock.after(SPARE_TIMEOUT_MS, () => this.#endSpare());
  }

  #endSpare(): void {
    this.#cancelSpare();
    this.#spare?.kill("SIGKILL");
    this.#spare = undefined;
  }

  #start(
    request: QueryRequest,
    signal: AbortSignal,
    resolve: (answer: RunningResult) => void,
    reject: (error: unknown) => void,
  ): void {
    const { path, clock, timeoutMs = QUERY_TIMEOUT_MS } = this.#options;
    const place = this.#workPlace();
    const folder = request.format === "parquet" ? mkdtempSync(join(place.folder, place.prefix)) : "";
    // End the stream only after the process has succeeded: a cut result must not look complete.
    const result = new PassThrough();
    const task: QueryTask = { ...request, path, folder };
    const child = this.#takeProcess();
    child.send(task, () => {});
    const release = clock.beginWork();
    let warnings: readonly string[] = [];
    let hasProgress = false;
    let isReady = false;
    let failure: Failure | undefined;
    let cancelTimeout: Cancel = () => {};
    let cancelCheck: Cancel = () => {};

    const kill = (reason: Failure) => {
      failure ??= reason;
      child.kill("SIGKILL");
    };
    const killStopped = () => kill(queryFailure("the query was cancelled", "run it again"));
    const killAfter = (ms: number, reason: Failure) => {
      cancelTimeout();
      cancelTimeout = clock.after(ms, () => kill(reason));
    };
    const shorter = "read a shorter range of time, fewer series or fewer rows";
    const timeout = queryFailure(`the query took longer than ${timeoutMs / 1000} s`, shorter);
    const restartTimeout = () => killAfter(timeoutMs, timeout);
    const checkMemory = () => {
      if ((readResidentBytes(child.pid ?? 0) ?? 0) > MAX_RESIDENT_BYTES) kill(memoryFailure());
      cancelCheck = clock.after(MEMORY_CHECK_INTERVAL_MS, checkMemory);
    };
    this.#running.add(killStopped);
    signal.addEventListener("abort", killStopped);
    if (signal.aborted) killStopped();
    const notStarted = `the query could not be started within ${START_TIMEOUT_MS / 1000} s`;
    const remedy = "the machine is busy: run it again";
    killAfter(START_TIMEOUT_MS, new Failure(notStarted, { code: "not_readable", remedy }));
    checkMemory();

    child.on("message", (message: QueryMessage) => {
      if ("warnings" in message) {
        ({ warnings } = message);
        restartTimeout();
      } else if ("failure" in message) failure ??= deserialiseFailure(message.failure);
      else if ("read" in message) {
        hasProgress = true;
        result.write(`${JSON.stringify(message)}\n`);
        resolve({ format: "lines", result });
      } else {
        isReady = true;
        // From now on each part of a long file renews the time.
        child.stdout?.on("data", restartTimeout).pipe(result, { end: false });
        resolve({ format: request.format, result });
      }
    });
    child.on("error", (error) => {
      failure ??= queryFailure(`the query cannot be started: ${error.message}`, "try again");
    });
    child.on("close", (code) => {
      this.#running.delete(killStopped);
      signal.removeEventListener("abort", killStopped);
      cancelTimeout();
      cancelCheck();
      release();
      this.#keepSpare();
      if (folder !== "") rmSync(folder, { recursive: true, force: true });
      // Without memory it is killed; with a code it ends by itself if its modules cannot be loaded.
      const isWhole = failure === undefined && code === 0 && isReady;
      const reason = new QueryFailure(
        failure ?? (code === null ? memoryFailure() : replacedFailure()),
        warnings,
      );
      if (isWhole) result.end();
      else if (hasProgress && !isReady) result.end(`${JSON.stringify(toErrorAnswer(reason))}\n`);
      else {
        result.on("error", () => {}).destroy(reason);
        reject(reason);
      }
    });
  }
}

const queryFailure = (message: string, remedy: string) => new Failure(message, { code: "bad_query", remedy });
const memoryFailure = () => queryFailure("the query needs too much memory", "sort or join fewer rows");
