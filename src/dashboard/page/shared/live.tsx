// What the daemon commits, as it happens, and what a page asks it for:
//   const quotes = useLivePoll("quotes", pair && { pair }, { what: "the quotes", seconds: 30, after: pairs, on: ({ streams }) => … });
//   <Reading of={[quotes]} room="table">{({ parts }) => …}</Reading>, or <Card title="…" of={[quotes]} room="table">{…}</Card>
// Until all are answered it says "Reading the quotes …", after a failure why and when it tries again, in place of its children.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { CommitNews, CommittedTick } from "../../../model/answers/ticks.ts";
import type { ApiAnswers, LiveEventData } from "../../api-answers.ts";
import {
  type ApiParams,
  byId,
  describeError,
  fetchJson,
  RETRY_SECONDS,
  repeatWhileVisible,
} from "./page-base.ts";
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
function onCommit(listener: (news: CommitNews) => void): () => void {
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
const readings = new Set<{ readonly note: string; readonly hasFailed: boolean }>();

/** `reading`: something is not answered yet; `no data`: something has failed; empty: every claim of the page was checked. */
function unreadState(): "" | "no data" | "reading" {
  const all = [...readings];
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

/** Opens the one connection of this browser, which allows only six to a host, and passes everything on to the other tabs. */
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

export interface LiveAnswer<T> {
  readonly value: T | undefined;
  /** What to say in place of the value; empty: it may be shown. */
  readonly note: string;
  readonly hasFailed: boolean;
}

export const shownIn = <T,>({ value, note }: LiveAnswer<T>): T | undefined =>
  note === "" ? value : undefined;

/** Calls the last `listener` with each commit, while somebody sees the page. */
export function useCommits(listener: (news: CommitNews) => void): void {
  const latest = useRef(listener);
  latest.current = listener;
  useLayoutEffect(() => onCommit((news) => latest.current(news)), []);
}

/** The newest tick of an asset's index since the page was opened: new prices between two market caps. */
export function useNewestTick(assetId: string): CommittedTick | undefined {
  const [, setTick] = useState<CommittedTick>();
  useCommits(() => setTick(newestTickOf(assetId)));
  return newestTickOf(assetId);
}

/** Shows in the header that the page is not live while there is a note: for what is not polled. */
export function useNote(note: string, hasFailed: boolean): void {
  useLayoutEffect(() => {
    const reading = { note, hasFailed };
    readings.add(reading);
    showState();
    return () => void readings.delete(reading);
  }, [note, hasFailed]);
}

/** The room that something takes, in pixels. */
const ROOMS_PX = { line: 42, figure: 53, plot: 260, table: 420, page: 900 };

interface LivePollOptions {
  readonly what: string;
  readonly seconds: number;
  /** Which commits are a reason to ask at once. */
  readonly on?: (news: CommitNews) => boolean;
  /** Commits are answered at most this often. */
  readonly throttleSeconds?: number;
  /** What it depends on: while that has no answer, neither has this. */
  readonly after?: LiveAnswer<unknown>;
  /** What a reader asked for, if it is not all parameters: an answer to an earlier question is hidden. */
  readonly question?: string;
}

/** The value, but a new one at most every `seconds`: the daemon refuses a request for each key of a fast typist. */
export function useThrottled<T>(value: T, seconds: number): T {
  const [taken, take] = useState(value);
  const latest = useRef(value);
  latest.current = value;
  const update = useMemo(() => throttle(seconds, () => take(latest.current)), [seconds]);
  useLayoutEffect(update, [value]);
  return taken;
}

/** Asks at an interval, after the commits that `on` picks, and after events that were missed. No `params`: nothing to ask yet. */
export function useLivePoll<K extends keyof ApiAnswers>(
  kind: K,
  params: ApiParams | undefined,
  { what, seconds, on, throttleSeconds = 5, after, question }: LivePollOptions,
): LiveAnswer<ApiAnswers[K]> {
  const query = params && String(new URLSearchParams(params));
  const asked = question ?? query;
  const [answer, setAnswer] = useState<{ asked: string | undefined; value: ApiAnswers[K] }>();
  const [failure, setFailure] = useState("");
  const latest = useRef({ on, asked });
  latest.current = { on, asked };
  // Before the first paint: the answer is there sooner.
  useLayoutEffect(() => {
    if (query === undefined) return;
    let isOver = false;
    setFailure("");
    const repetition = repeatWhileVisible(
      seconds,
      async () => {
        const value = await fetchJson(kind, new URLSearchParams(query));
        // Something else has been asked for meanwhile.
        if (isOver) return;
        setAnswer({ asked: latest.current.asked, value });
        setFailure("");
      },
      (error) => {
        if (!isOver) setFailure(describeError(error));
      },
    );
    const reread = throttle(throttleSeconds, () => void (isOver || repetition.now()));
    const ends = [onMissed(reread), onCommit((news) => void (latest.current.on?.(news) && reread()))];
    return () => {
      isOver = true;
      for (const end of [...ends, repetition.stop]) end();
    };
  }, [kind, query, seconds, throttleSeconds]);
  const isAnswered = query === undefined || (answer !== undefined && answer.asked === asked);
  const note = failure
    ? `Could not read ${what}: ${failure}, again in ${RETRY_SECONDS} s`
    : isAnswered
      ? ""
      : `Reading ${what} …`;
  useNote(note, failure !== "");
  const value = query === undefined ? undefined : answer?.value;
  return { value, note: after?.note || note, hasFailed: failure !== "" };
}

export interface ReadingProps<T extends readonly unknown[]> {
  readonly of: readonly [...{ readonly [I in keyof T]: LiveAnswer<T[I]> }];
  /** The room that it will take, so that nothing below it moves. */
  readonly room?: keyof typeof ROOMS_PX | undefined;
  /** It says nothing: another one does. */
  readonly isQuiet?: boolean | undefined;
  readonly children: (...values: NoInfer<T>) => ComponentChildren;
}

export function Reading<T extends readonly unknown[]>(props: ReadingProps<T>) {
  const { of, room, isQuiet = false, children } = props;
  const answers: readonly LiveAnswer<unknown>[] = of;
  const note = answers.find((one) => one.note !== "")?.note;
  if (note === undefined) {
    const values = answers.map(({ value }) => value);
    return values.includes(undefined) ? null : children(...(values as unknown as T));
  }
  const said = !isQuiet && <span class="soft reading" role="status" children={note} />;
  if (!room) return said;
  return <div class="room" style={{ minHeight: `${ROOMS_PX[room]}px` }} children={said} />;
}
