import { PassThrough } from "node:stream";
import { type CommitNews, joinNews } from "../model/answers/ticks.ts";
import type { Cancel, Clock } from "../runtime/clock.ts";
import type { HttpResponse } from "../runtime/http-server.ts";
import type { LiveEventData } from "./api-answers.ts";

type LiveEventsOptions = { clock: Pick<Clock, "after">; version: string; problem: () => string | undefined };

/** Commits that follow one another closely are one event. */
const MIN_INTERVAL_MS = 100;
/** After so long without a commit, an event says that the daemon is still there. */
const HEARTBEAT_INTERVAL_MS = 5_000;
/** What a client may leave unread; one that reads slower is disconnected, and reads the state anew when it returns. */
const MAX_UNREAD_BYTES = 512 * 1024;
const MAX_CLIENTS = 200;

/** Sends open pages what the daemon has committed, as the writer reports it: nothing is read. */
export class LiveEvents {
  readonly #options: LiveEventsOptions;
  readonly #clients = new Set<PassThrough>();
  #news: CommitNews[] = [];
  #cancelTimer: Cancel | undefined;

  constructor(options: LiveEventsOptions) {
    this.#options = options;
  }

  notify(news: readonly CommitNews[]): void {
    if (this.#clients.size === 0) return;
    if (this.#news.length === 0) this.#schedule(MIN_INTERVAL_MS);
    this.#news.push(...news);
  }

  open(): HttpResponse {
    const [oldest] = this.#clients;
    if (this.#clients.size >= MAX_CLIENTS && oldest) oldest.destroy();
    const client = new PassThrough();
    this.#clients.add(client);
    client.once("close", () => this.#clients.delete(client));
    client.on("error", () => {});
    const hello = { version: this.#options.version, ...this.#health() };
    client.write(`retry: 2000\n${toEvent("hello", hello)}`);
    if (!this.#cancelTimer) this.#schedule(HEARTBEAT_INTERVAL_MS);
    return { type: "text/event-stream", body: client };
  }

  #schedule(afterMs: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = this.#options.clock.after(afterMs, () => {
      this.#cancelTimer = undefined;
      const news = this.#news;
      this.#news = [];
      const health = this.#health();
      const commit = news.length > 0 && toEvent("commit", { ...joinNews(news), ...health });
      this.#send(commit || toEvent("idle", health));
      if (this.#clients.size > 0) this.#schedule(HEARTBEAT_INTERVAL_MS);
    });
  }

  readonly #health = () => ({ problem: this.#options.problem() ?? null });

  #send(event: string): void {
    for (const client of this.#clients) {
      if (client.writableLength + client.readableLength > MAX_UNREAD_BYTES) client.destroy();
      else client.write(event);
    }
  }
}

const toEvent = <K extends keyof LiveEventData>(name: K, data: LiveEventData[K]): string =>
  `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
