/**
 * The simulator's bad days: text, one fault a line, `#` for comments.
 *
 *   WHERE WHAT [PARAMETERS] [CONDITIONS]
 *
 *   POST /oauth/token   status 503 times=3                 # each audience's first three token requests
 *   GET  /index-ticker  cut reset at=1000 p=0.05 page=later
 *   GET  *              rate-limit retry-after=imf wait=30s every=7
 *   GET  /asset/*       status 404 query=type=FIAT
 *   port                refuse from=60s to=120s
 *   ws                  drop-connection 1006 on=tick p=0.01
 *
 * WHERE is a method and a path without its version (a `*` at the end stands for anything), `ws`, or `port`.
 * WHAT is one of `faultWords`. CONDITIONS are p, times, every, after, total, from, to, page and query: `FaultWhen`.
 *
 * Whether a line strikes is a hash of the seed, the line, the request, and how often this very request came before.
 * No sequence is shared between requests, so the order in which they arrive changes nothing (`total` is the exception).
 */
import type { Clock } from "../../runtime/clock.ts";
import { hashText } from "../market/hash.ts";
import type { FaultEventKind } from "./fault-definition.ts";
import { type FaultLine, parseFaultLines } from "./parser.ts";

/** What happens, as far as a script is concerned. */
export interface FaultEvent {
  kind: FaultEventKind;
  method: string;
  path: string;
  /** Query parameters, or the properties of a websocket message. */
  query: ReadonlyMap<string, string>;
  /** What makes two events "the very same"; method, path and query unless told. */
  key?: string;
  /** Asked only when a line has page=last. */
  isLastPage?: () => boolean;
}

/** A line that struck. */
export interface TriggeredFault {
  line: FaultLine;
  /** Further decisions of the same strike, as pure as the strike itself. */
  chance(...about: (string | number)[]): number;
  /** The fault found nothing to change (no cursor, no such property): it has not struck after all. */
  uncount(): void;
}

export interface FaultCount {
  line: number;
  text: string;
  struck: number;
}

interface RequestCounts {
  seen: number;
  triggered: number;
}

export class FaultScript {
  readonly #lines: readonly { line: FaultLine; asked: Map<string, RequestCounts>; counts: number }[];
  readonly #seed: string | number;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #startedAt: number;

  /** Throws a FaultScriptError that names the line and the nearest known word. */
  constructor(text: string, options: { seed: string | number; clock: Pick<Clock, "monotonic"> }) {
    this.#lines = parseFaultLines(text).map((line) => ({ line, asked: new Map(), struck: 0 }));
    this.#seed = options.seed;
    this.#clock = options.clock;
    this.#startedAt = options.clock.monotonic();
  }

  /** The lines that strike this event, in the order of the script. Counts the event as asked. */
  triggeredFaults(event: FaultEvent): TriggeredFault[] {
    const struck: TriggeredFault[] = [];
    const elapsed = this.#clock.monotonic() - this.#startedAt;
    const key = event.key ?? requestKey(event);
    for (const entry of this.#lines) {
      const { line, asked } = entry;
      if (!matchesEvent(line, event, elapsed)) continue;
      const countTrigger = asked.get(key) ?? { seen: 0, triggered: 0 };
      asked.set(key, countTrigger);
      const nth = countTrigger.seen++;
      const chance = (...about: (string | number)[]) =>
        seededFraction(this.#seed, line.lineNumber, key, nth, ...about);
      const { p, times, every, after, total } = line.conditions;
      const phase =
        every > 1 ? Math.floor(seededFraction(this.#seed, line.lineNumber, key, "phase") * every) : 0;
      if (nth < after || (nth - after + phase) % every !== 0) continue;
      if (countTrigger.triggered >= times || entry.counts >= total || chance("strikes") >= p) continue;
      countTrigger.triggered++;
      entry.counts++;
      const miss = () => {
        countTrigger.triggered--;
        entry.counts--;
      };
      struck.push({ line, chance, uncount: miss });
    }
    return struck;
  }

  /** False: no line can ever concern this moment, so the caller need not ask. */
  handles(moment: FaultEventKind): boolean {
    return this.#lines.some(({ line }) => line.eventKinds.includes(moment));
  }

  linesFor(moment: FaultEventKind): FaultLine[] {
    return this.#lines.filter(({ line }) => line.eventKinds.includes(moment)).map(({ line }) => line);
  }

  /** For a fault that no event draws: counts a strike of that line. */
  count(line: FaultLine): void {
    for (const entry of this.#lines) if (entry.line === line) entry.counts++;
  }

  /** How often each line struck. A run whose lines never struck has proved nothing. */
  get struck(): FaultCount[] {
    return this.#lines.map(({ line, counts: struck }) => ({
      line: line.lineNumber,
      text: line.text,
      struck,
    }));
  }
}

export function requestKey({ method, path, query }: Pick<FaultEvent, "method" | "path" | "query">): string {
  const sorted = [...query].sort(([left], [right]) => (left < right ? -1 : 1));
  return `${method} ${path}?${sorted.map(([name, value]) => `${name}=${value}`).join("&")}`;
}

/** The same parts give the same number, whatever was asked before and in whatever order. */
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
  // A word that belongs to a connection says itself at which moment it is drawn.
  if (line.definition.parameters.on && line.textOf("on") !== event.kind) return false;
  if (elapsed < from || elapsed >= to) return false;
  if (!query.every(([name, value]) => event.query.get(name) === value)) return false;
  if (page === "any") return true;
  if (page === "last") return event.isLastPage?.() ?? false;
  return event.query.has("startAfter") === (page === "later");
}

const matchesMethod = (pattern: string, method: string) => pattern === "*" || pattern === method;

function matchesPath(pattern: string, path: string): boolean {
  return pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}
