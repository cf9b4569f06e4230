/**
 * A fault script is text: one fault per line, `#` for comments.
 *
 *   WHERE WHAT [PARAMETERS] [CONDITIONS]
 *
 *   POST /oauth/token   status 503 times=3                 # the first three token requests of each audience
 *   GET  /index-ticker  cut reset at=1000 p=0.05 page=later
 *   GET  *              rate-limit retry-after=imf wait=30s after=7
 *   GET  /asset/*       status 404 query=type=FIAT
 *   port                refuse from=60s to=120s
 *   ws                  drop-connection 1006 on=tick p=0.01
 *
 * WHERE is a method and a path without its version (a trailing `*` matches any rest), `ws`, or `port`.
 * WHAT is one of `faultDefinitions`. CONDITIONS are p, times, after, total, from, to, page and query: `faultConditions`.
 *
 * Whether a line triggers is a hash of the seed, the line, the request, and how often the same request came before.
 * Requests share no random sequence, so their order of arrival changes nothing (except for `total`).
 */
import type { Clock } from "../../runtime/clock.ts";
import { hashText } from "../market/hash.ts";
import type { FaultEventKind } from "./catalogue.ts";
import { type FaultLine, parseFaultLines } from "./parser.ts";

/** An event on which a fault can trigger. */
export interface FaultEvent {
  kind: FaultEventKind;
  method: string;
  path: string;
  /** Query parameters, or the properties of a websocket message. */
  query: ReadonlyMap<string, string>;
  /** Two events with the same key count as the same request. Default: method, path and query. */
  key?: string;
}

/** A line of the script that triggered on an event. */
export interface TriggeredFault {
  line: FaultLine;
  /** A fraction in [0, 1) for further choices of this fault, derived from the same hash. */
  chance(...about: (string | number)[]): number;
  /** The client's secret and its newest tokens. */
  secrets(): readonly string[];
  /** Removes this trigger from the counts, when the fault found nothing to change. */
  uncount(): void;
}

/** Served as JSON by GET /simulator/faults. */
export interface FaultCount {
  line: number;
  text: string;
  struck: number;
}

interface RequestCounts {
  seen: number;
  triggered: number;
}

interface LineState {
  readonly line: FaultLine;
  readonly requests: Map<string, RequestCounts>;
  triggered: number;
}

export class FaultScript {
  readonly #lines: readonly LineState[];
  readonly #seed: string | number;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #startedAt: number;
  readonly #secrets: () => readonly string[];

  /** Throws a FaultScriptError that names the line and the nearest known word. */
  constructor(
    text: string,
    options: {
      seed: string | number;
      clock: Pick<Clock, "monotonic">;
      secrets?: () => readonly string[];
    },
  ) {
    this.#lines = parseFaultLines(text).map((line) => ({ line, requests: new Map(), triggered: 0 }));
    this.#seed = options.seed;
    this.#clock = options.clock;
    this.#startedAt = options.clock.monotonic();
    this.#secrets = options.secrets ?? (() => []);
  }

  /** The lines that trigger on this event, in script order. Counts the event as seen. */
  triggeredFaults(event: FaultEvent): TriggeredFault[] {
    const faults: TriggeredFault[] = [];
    const elapsed = this.#clock.monotonic() - this.#startedAt;
    const key = event.key ?? requestKey(event);
    for (const state of this.#lines) {
      const { line, requests } = state;
      if (!matchesEvent(line, event, elapsed)) continue;
      const counts = requests.get(key) ?? { seen: 0, triggered: 0 };
      requests.set(key, counts);
      const nth = counts.seen++;
      const chance = (...about: (string | number)[]) =>
        seededFraction(this.#seed, line.lineNumber, key, nth, ...about);
      const { p, times, after, total } = line.conditions;
      if (nth < after) continue;
      // The text "strikes" is part of the hash: another text would change which requests fail for a seed.
      if (counts.triggered >= times || state.triggered >= total || chance("strikes") >= p) continue;
      counts.triggered++;
      state.triggered++;
      const uncount = () => {
        counts.triggered--;
        state.triggered--;
      };
      faults.push({ line, chance, secrets: this.#secrets, uncount });
    }
    return faults;
  }

  linesFor(kind: FaultEventKind): FaultLine[] {
    return this.#lines.filter(({ line }) => line.eventKinds.includes(kind)).map(({ line }) => line);
  }

  /** Counts a trigger of a line that no event triggers (the port). */
  countTrigger(line: FaultLine): void {
    for (const state of this.#lines) if (state.line === line) state.triggered++;
  }

  /** How often each line triggered. Tests check this: a script that never triggers tests nothing. */
  get counts(): FaultCount[] {
    return this.#lines.map(({ line, triggered }) => ({
      line: line.lineNumber,
      text: line.text,
      struck: triggered,
    }));
  }
}

function requestKey({ method, path, query }: Pick<FaultEvent, "method" | "path" | "query">): string {
  const sorted = [...query].sort(([left], [right]) => (left < right ? -1 : 1));
  return `${method} ${path}?${sorted.map(([name, value]) => `${name}=${value}`).join("&")}`;
}

/** Depends on its arguments alone, not on earlier calls. */
function seededFraction(...parts: readonly (string | number)[]): number {
  return hashText(parts.join("\u0000")) / 2 ** 32;
}

function matchesEvent(line: FaultLine, event: FaultEvent, elapsed: number): boolean {
  const { from, to, page, query } = line.conditions;
  if (!line.eventKinds.includes(event.kind)) return false;
  if (
    event.kind === "request" &&
    !(matchesMethod(line.method, event.method) && matchesPath(line.path, event.path))
  )
    return false;
  // Connection faults choose their event with the parameter `on`.
  if (line.definition.parameters.on && line.textOf("on") !== event.kind) return false;
  if (elapsed < from || elapsed >= to) return false;
  if (!query.every(([name, value]) => event.query.get(name) === value)) return false;
  if (page === "any") return true;
  return event.query.has("startAfter") === (page === "later");
}

const matchesMethod = (pattern: string, method: string) => pattern === "*" || pattern === method;

function matchesPath(pattern: string, path: string): boolean {
  return pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}
