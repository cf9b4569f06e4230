// What a page asks the daemon for, and what it says meanwhile:
//   const quotes = useLivePoll("quotes", pair && { pair }, { what: "the quotes", seconds: 30, after: pairs, on: ({ streams }) => … });
//   <Reading of={[quotes]} room="table">{({ parts }) => …}</Reading>, or <Card title="…" of={[quotes]} room="table">{…}</Card>
// Until all are answered it says "Reading the quotes …", after a failure why and when it tries again, in place of its children.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { CommitNews, CommittedTick } from "../../../model/answers/ticks.ts";
import type { ApiAnswers } from "../../api-answers.ts";
import { newestTickOf, noteReading, onCommit, onMissed, throttle } from "./live.ts";
import { type ApiParams, describeError, fetchJson, RETRY_SECONDS, repeatWhileVisible } from "./page-base.ts";

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
  const key = useRef({});
  useLayoutEffect(() => noteReading(key.current, note, hasFailed), [note, hasFailed]);
  useLayoutEffect(() => () => noteReading(key.current), []);
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
