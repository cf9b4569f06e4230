import { PassThrough } from "node:stream";
import { formatTimestamp, type Micros } from "../model/time.ts";
import type { Clock } from "../runtime/clock.ts";
import type { HttpResponse } from "../runtime/http-server.ts";
import type { LiveEventData } from "./api-answers.ts";
import type { ReaderThread } from "./reader-thread.ts";

interface LiveEventsOptions {
  readonly reader: Pick<ReaderThread, "query">;
  readonly clock: Pick<Clock, "after" | "beginWork">;
  readonly version: string;
  readonly startedAt: Micros;
}

const POLL_INTERVAL_MS = 1_000;
/** After so many polls without a commit, an event says that the daemon is still there. */
const POLLS_PER_HEARTBEAT = 5;
/** What a client may leave unread; one that reads slower is disconnected, and reads the state anew when it returns. */
const MAX_UNREAD_BYTES = 512 * 1024;
const MAX_CLIENTS = 200;

/**
 * Tells open pages about commits, at most once a second. One read of the warehouse serves all of them, and none happens while no
 * page is open.
 */
export class LiveEvents {
  readonly #options: LiveEventsOptions;
  readonly #clients = new Set<PassThrough>();
  #isPolling = false;
  #silentPolls = 0;

  constructor(options: LiveEventsOptions) {
    this.#options = options;
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
    if (this.#isPolling || this.#clients.size === 0) return;
    this.#isPolling = true;
    const { clock } = this.#options;
    clock.after(POLL_INTERVAL_MS, () => {
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
