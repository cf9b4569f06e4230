// What a page says while it has no answer: an element with data-reads="NAME …" is hidden until these requests are answered,
// and again after a failure. A note takes its place, unless it has data-quiet. The style sheet hides it before any script runs.

import { describeError, element, fetchJson, RETRY_SECONDS, repeatWhileVisible } from "./page-base.js";

/** By name: the note in place of the claims, or "" once they may be made. */
const notes = new Map();
const failed = new Set();
const listeners = new Set();
const noteElements = new WeakMap();

/** `reading`: something is not answered yet; `no data`: something has failed; empty: every claim of the page was told. */
export function unreadState() {
  if ([...notes.values()].every((note) => note === "")) return "";
  return failed.size > 0 ? "no data" : "reading";
}

/** Calls `listener` whenever `unreadState` may have changed. */
export function watchReadings(listener) {
  listeners.add(listener);
}

/** Begins to read `what`; the page must say how that goes on. */
export function startReading(name, what) {
  const say = (note, hasFailed = false) => {
    if (notes.get(name) === note) return;
    notes.set(name, note);
    if (hasFailed) failed.add(name);
    else failed.delete(name);
    for (const area of document.querySelectorAll(`[data-reads~="${name}"]`)) showArea(area);
    for (const listener of listeners) listener();
  };
  const reading = {
    begin: () => say(`Reading ${what} …`),
    answer: () => say(""),
    fail: (error) =>
      say(`Could not read ${what}: ${describeError(error)}, again in ${RETRY_SECONDS} s`, true),
  };
  reading.begin();
  return reading;
}

function showArea(area) {
  const note = area.dataset.reads.split(" ").reduce((first, name) => first || (notes.get(name) ?? ""), "");
  area.toggleAttribute("data-answered", note === "");
  if ("quiet" in area.dataset) return;
  if (!noteElements.has(area)) {
    const [tag, className] = area.tagName === "SPAN" ? ["span", "reading"] : ["p", "soft reading"];
    noteElements.set(area, element(tag, { className, role: "status" }));
    area.before(noteElements.get(area));
  }
  noteElements.get(area).textContent = note;
  noteElements.get(area).hidden = note === "";
}

/** Reads a path once, and says how that went. */
export async function read(reading, path) {
  try {
    const answer = await fetchJson(path);
    reading.answer();
    return answer;
  } catch (error) {
    reading.fail(error);
    throw error;
  }
}

/**
 * Fetches a path at an interval and shows the answer. `question` is what a reader asked for: an answer to an earlier one is no
 * longer shown. `prepare` runs before each request; if it returns false, there is nothing to request yet.
 */
export function poll({
  reading,
  path,
  question = path,
  seconds,
  show,
  onFailure = () => {},
  prepare = async () => true,
}) {
  let answered;
  const work = async () => {
    if (!(await prepare())) return reading.answer();
    const [requested, asked] = [path(), question()];
    if (answered !== undefined && answered !== asked) reading.begin();
    const answer = await fetchJson(requested);
    // Something else has been asked for meanwhile, and its answer may have arrived first.
    if (requested !== path()) return;
    answered = asked;
    // What is hidden has no size to draw in.
    reading.answer();
    show(answer);
  };
  return repeatWhileVisible(seconds, work, (error) => {
    reading.fail(error);
    onFailure();
  });
}
