import { PassThrough } from "node:stream";
import { formatTimestamp, type Micros } from "../model/time.ts";
import type { Cancel, Clock } from "../runtime/clock.ts";
import type { HttpResponse } from "../runtime/http-server.ts";
import type { LiveEventData } from "./api-answers.ts";
import type { ReaderThread } from "./reader-thread.ts";

interface LiveEventsOptions {
  readonly reader: Pick<ReaderThread, "query">;
  readonly clock: Pick<Clock, "after" | "beginWork">;
  readonly version: string;
  readonly startedAt: Micros;
}

/** Commits that follow one another closely are one event. */
const MIN_INTERVAL_MS = 100;
/** Without a signal, as while another process writes, a commit is noticed so late. */
const POLL_INTERVAL_MS = 1_000;
/** After so many polls without a commit, an event says that the daemon is still there. */
const POLLS_PER_HEARTBEAT = 5;
/** What a client may leave unread; one that reads slower is disconnected, and reads the state anew when it returns. */
const MAX_UNREAD_BYTES = 512 * 1024;
const MAX_CLIENTS = 200;

/** Tells open pages about commits. One read of the warehouse serves all of them, and none happens while no page is open. */
export class LiveEvents {
  readonly #options: LiveEventsOptions;
  readonly #clients = new Set<PassThrough>();
  #isPolling = false;
  #cancelPoll: Cancel | undefined;
  #isCommitted = false;
  #silentPolls = 0;

  constructor(options: LiveEventsOptions) {
    this.#options = options;
  }

  /** The daemon has committed something. */
  notify(): void {
    if (this.#isCommitted || this.#clients.size === 0) return;
    this.#isCommitted = true;
    if (this.#isPolling) return;
    this.#cancelPoll?.();
    this.#cancelPoll = undefined;
    this.#schedule();
  }

  /** A stream of server-sent events for one page. */
  open(): HttpResponse {
    const [oldest] = this.#clients;
    if (this.#clients.size >= MAX_CLIENTS && oldest) oldest.destroy();
    const client = new PassThrough();
    this.#clients.add(client);
    client.once("close", () => this.#clients.delete(client));
    client.on("error", () => {});
    const { version, startedAt } = this.#options;
    client.write(`retry: 2000\n${toEvent("hello", { version, started_at: formatTimestamp(startedAt) })}`);
    this.#schedule();
    return { type: "text/event-stream", body: client };
  }

  #schedule(): void {
    if (this.#isPolling || this.#cancelPoll || this.#clients.size === 0) return;
    const { clock } = this.#options;
    this.#cancelPoll = clock.after(this.#isCommitted ? MIN_INTERVAL_MS : POLL_INTERVAL_MS, () => {
      this.#cancelPoll = undefined;
      this.#isPolling = true;
      this.#isCommitted = false;
      const release = clock.beginWork();
      void this.#poll().finally(() => {
        this.#isPolling = false;
        this.#schedule();
        release();
      });
    });
  }

  async #poll(): Promise<void> {
    if (this.#clients.size === 0) return;
    // A warehouse that cannot be read is no commit; the page notices by its own requests.
    const pulse = await this.#options.reader.query("pulse").catch(() => undefined);
    this.#silentPolls++;
    if (pulse) this.#send(toEvent("commit", pulse));
    else if (this.#silentPolls >= POLLS_PER_HEARTBEAT) this.#send(toEvent("idle", {}));
  }

  #send(event: string): void {
    this.#silentPolls = 0;
    for (const client of this.#clients) {
      if (client.writableLength + client.readableLength > MAX_UNREAD_BYTES) client.destroy();
      else client.write(event);
    }
  }
}

function toEvent<K extends keyof LiveEventData>(name: K, data: LiveEventData[K]): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
