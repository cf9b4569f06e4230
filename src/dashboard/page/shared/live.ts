// What the daemon commits, as it happens. The tabs of one browser share one connection: browsers allow only six to a host.

import type { CommitNews, CommittedTick } from "../../../model/answers/ticks.ts";
import type { LiveEventData } from "../../api-answers.ts";
import { byId, RETRY_SECONDS } from "./page-base.ts";
import { duration } from "./time-format.ts";

/** Longer than the daemon's heartbeat: the page is no longer live. */
const STALE_AFTER_SECONDS = 12;
const events = ["hello", "commit", "idle"] as const satisfies (keyof LiveEventData)[];
type LiveEvent =
  | { [K in keyof LiveEventData]: { readonly name: K; readonly data: LiveEventData[K] } }[keyof LiveEventData]
  | { readonly name: "lost" };

/** The newest tick of the index of each asset, since the page was opened. */
const newestTicks = new Map<string, CommittedTick>();
const commitListeners = new Set<(news: CommitNews) => void>([rememberTicks]);
const reloadListeners = new Set<() => void>();
let lastHeard = performance.now();
let hasHeard = false;
let isLost = false;
/** Why what is shown may be old, although the daemon answers. */
let problem: string | null = null;
let version: string | undefined;
/** Commits came while nobody saw the page. */
let hasSkipped = false;

export const newestTickOf = (assetId: string): CommittedTick | undefined => newestTicks.get(assetId);

function rememberTicks({ ticks }: CommitNews): void {
  for (const tick of ticks) {
    const [type, id, ts] = tick;
    if (type === "GWA" && ts > (newestTicks.get(id)?.[2] ?? 0)) newestTicks.set(id, tick);
  }
}

/** Returns what ends it. */
export function onCommit(listener: (news: CommitNews) => void): () => void {
  commitListeners.add(listener);
  return () => void commitListeners.delete(listener);
}

/** Calls `listener` when events may have been missed: the page must read its state again. */
export function onMissed(listener: () => void): () => void {
  reloadListeners.add(listener);
  return () => void reloadListeners.delete(listener);
}

/** The daemon refuses a request for each key of a fast typist. */
export const TYPING_SECONDS = 0.2;

/** Calls `work` at once, and again when calls came meanwhile, but at most every `seconds`. */
export function throttle(seconds: number, work: () => void): () => void {
  let timer: number | undefined;
  let isDue = false;
  const run = () => {
    isDue = timer !== undefined;
    if (isDue) return;
    work();
    timer = setTimeout(() => {
      timer = undefined;
      if (isDue) run();
    }, seconds * 1000);
  };
  return run;
}

/** What a page reads: the note in place of its claims, or "" once they may be made. */
const readings = new Map<object, { readonly note: string; readonly hasFailed: boolean }>();

/** Says how a reading goes. Without a note the reading has ended with its component. */
export function noteReading(key: object, note?: string, hasFailed = false): void {
  if (note === undefined) readings.delete(key);
  else readings.set(key, { note, hasFailed });
  showState();
}

/** `reading`: something is not answered yet; `no data`: something has failed; empty: every claim of the page was checked. */
function unreadState(): "" | "no data" | "reading" {
  const all = [...readings.values()];
  if (all.every(({ note }) => note === "")) return "";
  return all.some(({ hasFailed }) => hasFailed) ? "no data" : "reading";
}

function hear(event: LiveEvent): void {
  const isReturn = event.name === "hello" && hasHeard;
  isLost = event.name === "lost";
  if (event.name !== "lost") {
    hasHeard = true;
    lastHeard = performance.now();
    ({ problem } = event.data);
  }
  showState();
  if (event.name === "hello") {
    // A newer version may have other pages.
    if (version !== undefined && version !== event.data.version) location.reload();
    version = event.data.version;
  }
  if (isReturn) for (const reload of reloadListeners) reload();
  if (event.name !== "commit") return;
  if (document.hidden) hasSkipped = true;
  else for (const listener of commitListeners) listener(event.data);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden || !hasSkipped) return;
  hasSkipped = false;
  for (const reload of reloadListeners) reload();
});

function showState(): void {
  const silent = (performance.now() - lastHeard) / 1000;
  const isConnected = hasHeard && !isLost && silent < STALE_AFTER_SECONDS;
  // What the page shows follows the commits only if it could be read.
  const unread = unreadState();
  const isLive = isConnected && unread === "" && problem === null;
  const [live, text] = [byId("live"), byId("live-text")];
  live.dataset.state = isLive ? "live" : hasHeard ? "stale" : "off";
  byId("live-dot").style.background = isLive ? "var(--covered)" : hasHeard ? "var(--open)" : "";
  // One text a minute, not one a second: a screen reader announces each.
  const since = silent < 60 ? "" : ` for ${duration(silent)}`;
  const missing = hasHeard || isLost ? `no connection${since}` : "connecting";
  const shown = isLive ? "live" : isConnected ? unread || "stuck" : missing;
  if (text.textContent !== shown) text.textContent = shown;
  live.title = isConnected && problem !== null ? problem : "";
}

/** Opens the connection of this browser, and passes everything on to the other tabs. */
function connect(channel?: BroadcastChannel): void {
  const source = new EventSource("/api/events");
  for (const name of events) {
    source.addEventListener(name, ({ data }) => {
      const event = { name, data: JSON.parse(data) } as LiveEvent;
      hear(event);
      channel?.postMessage(event);
    });
  }
  source.addEventListener("error", () => {
    hear({ name: "lost" });
    channel?.postMessage({ name: "lost" });
    // The browser itself tries again only after a connection that broke, not after an error of the daemon.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => connect(channel), RETRY_SECONDS * 1000);
  });
}

/** The tab that holds the lock has the connection; when it closes, another one gets the lock. */
function share(): void {
  if (!navigator.locks || typeof BroadcastChannel !== "function") return void connect();
  const channel = new BroadcastChannel("mds-sync-live");
  channel.addEventListener("message", ({ data }: MessageEvent<LiveEvent>) => hear(data));
  void navigator.locks.request("mds-sync-live", () => {
    connect(channel);
    return new Promise(() => {});
  });
}

setInterval(showState, 1_000);
share();
