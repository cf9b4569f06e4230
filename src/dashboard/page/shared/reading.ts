// What a page says while it has no answer: an element with data-reads="NAME …" is hidden until these requests are answered,
// and again after a failure. A note takes its place, unless it has data-quiet. The style sheet hides it before any script runs.

import type { ApiAnswers } from "../../api-answers.ts";
import { describeError, element, fetchJson, RETRY_SECONDS } from "./page-base.ts";

/** By name: the note in place of the claims, or "" once they may be made. */
const notes = new Map<unknown, string>();
const failed = new Set<unknown>();
const listeners = new Set<() => void>();
const noteElements = new WeakMap<HTMLElement, HTMLElement>();

/** How a request goes. */
interface Reading {
  readonly begin: () => void;
  readonly answer: () => void;
  readonly fail: (error: unknown) => void;
}

/** `reading`: something is not answered yet; `no data`: something has failed; empty: every claim of the page was told. */
export function unreadState(): "" | "no data" | "reading" {
  if ([...notes.values()].every((note) => note === "")) return "";
  return failed.size > 0 ? "no data" : "reading";
}

/** Calls `listener` whenever `unreadState` may have changed. */
export function watchReadings(listener: () => void): void {
  listeners.add(listener);
}

/** Says how a reading goes: the note in place of its claims, or "". Without a note the reading has ended with its component. */
export function noteReading(key: unknown, note?: string, hasFailed = false): void {
  if (note === undefined) notes.delete(key);
  else notes.set(key, note);
  if (hasFailed) failed.add(key);
  else failed.delete(key);
  for (const listener of listeners) listener();
}

/** Begins to read `what`; the page must say how that goes on. */
export function startReading(name: string, what: string): Reading {
  const say = (note: string, hasFailed = false) => {
    if (notes.get(name) === note) return;
    notes.set(name, note);
    for (const area of document.querySelectorAll<HTMLElement>(`[data-reads~="${name}"]`)) showArea(area);
    noteReading(name, note, hasFailed);
  };
  const reading = {
    begin: () => say(`Reading ${what} …`),
    answer: () => say(""),
    fail: (error: unknown) =>
      say(`Could not read ${what}: ${describeError(error)}, again in ${RETRY_SECONDS} s`, true),
  };
  reading.begin();
  return reading;
}

function showArea(area: HTMLElement): void {
  const names = area.dataset.reads?.split(" ") ?? [];
  const note = names.reduce((first, name) => first || (notes.get(name) ?? ""), "");
  area.toggleAttribute("data-answered", note === "");
  if ("quiet" in area.dataset) return;
  const shown = noteElements.get(area) ?? insertNote(area);
  shown.textContent = note;
  shown.hidden = note === "";
}

function insertNote(area: HTMLElement): HTMLElement {
  const isInline = area.tagName === "SPAN";
  const className = isInline ? "reading" : "soft reading";
  const note = element(isInline ? "span" : "p", { className, role: "status" });
  noteElements.set(area, note);
  area.before(note);
  return note;
}

/** Reads an answer once, and says how that went. */
export async function read<K extends keyof ApiAnswers>(reading: Reading, kind: K): Promise<ApiAnswers[K]> {
  try {
    const answer = await fetchJson(kind);
    reading.answer();
    return answer;
  } catch (error) {
    reading.fail(error);
    throw error;
  }
}
