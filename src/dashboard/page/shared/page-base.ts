// Functions that all pages use: requests to the daemon, what the browser remembers, and when to draw again.

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useReducer } from "preact/hooks";
import type { ErrorAnswer } from "../../../model/answers/query.ts";
import type { ApiAnswers } from "../../api-answers.ts";

export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found) return found;
  throw new Error(`the page has no #${id}`);
}

/** What this browser remembers; null if nothing, or if storage is blocked. */
export function readStored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** If storage is blocked or full, a choice lasts as long as the page. */
export function store(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {}
}

export const RETRY_SECONDS = 5;
const REQUEST_TIMEOUT_MS = 30_000;

/** For people: a request without a response has a message that only the browser understands. */
export function describeError(error: unknown): string {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  return error instanceof TypeError || name === "TimeoutError" ? "the daemon does not answer" : message;
}

export type ApiParams = URLSearchParams | Readonly<Record<string, string>>;

export async function fetchJson<K extends keyof ApiAnswers>(kind: K, params: ApiParams = {}) {
  const query = String(new URLSearchParams(params));
  const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
  const response = await fetch(`/api/${kind}${query && `?${query}`}`, { cache: "no-store", signal });
  if (!response.ok) throw await toError(response);
  return (await response.json()) as ApiAnswers[K];
}

export class RequestError extends Error {
  readonly warnings: readonly string[];

  constructor({ error, remedy, warnings = [] }: ErrorAnswer) {
    // The messages of SQLite have a colon of their own.
    super(remedy ? `${error}; ${remedy}` : error);
    this.warnings = warnings;
  }
}

/** The error in the body of a failed response: JSON with `error`, or plain text. */
export async function toError(response: Response): Promise<Error> {
  const text = await response.text();
  try {
    return new RequestError(JSON.parse(text) as ErrorAnswer);
  } catch {
    return new Error(text.trim() || `the daemon answered ${response.status}`);
  }
}

/**
 * Runs `work` at once and then at an interval, sooner after a failure, while the page is visible. `now` does it at once, `stop`
 * ends it.
 */
export function repeatWhileVisible(
  seconds: number,
  work: () => Promise<void>,
  onError: (error: unknown) => void,
) {
  let timer: number | undefined;
  let isOver = false;
  const run = async () => {
    let delay = seconds;
    clearTimeout(timer);
    try {
      if (!document.hidden) await work();
    } catch (error) {
      delay = RETRY_SECONDS;
      onError(error);
    }
    clearTimeout(timer);
    if (!isOver) timer = setTimeout(run, delay * 1000);
  };
  const runIfVisible = () => void (document.hidden || run());
  document.addEventListener("visibilitychange", runIfVisible);
  void run();
  const stop = () => {
    isOver = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", runIfVisible);
  };
  return { now: run, stop };
}

/** Nothing is last, numbers come before texts. */
export function compareValues(a: string | number | null, b: string | number | null, sign: 1 | -1): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  if (typeof a !== typeof b) return typeof a === "number" ? -sign : sign;
  return (a < b ? -1 : a > b ? 1 : 0) * sign;
}
export const sortNames = {
  1: { name: "ascending", arrow: " ↑" },
  "-1": { name: "descending", arrow: " ↓" },
} as const;

/** How often it was called, and the call. */
const useCount = () => useReducer<number, void>((times) => times + 1, 0);
export const useRedraw = (): (() => void) => useCount()[1];

/** Counts how often colours or the width have changed: a canvas does not follow the style sheet. */
export function useRedraws(): number {
  const [redraws, redraw] = useCount();
  useEffect(() => {
    const ended = new AbortController();
    let width = innerWidth;
    const onResize = () => {
      if (width !== innerWidth) redraw();
      width = innerWidth;
    };
    window.addEventListener("resize", onResize, ended);
    window.addEventListener("theme", () => redraw(), ended);
    return () => ended.abort();
  }, []);
  return redraws;
}

/** Calls `measure` before the next paint, and whenever the element has another size. */
export function useResized(box: RefObject<Element | null>, measure: () => void, inputs: unknown[] = []) {
  useLayoutEffect(() => {
    const observer = new ResizeObserver(measure);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, inputs);
}
