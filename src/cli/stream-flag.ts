import { exitCode, Failure } from "../model/failure.ts";
import { parseDayOrInstant } from "../model/instant.ts";
import { nearest } from "../model/nearest.ts";
import { type Stream, streams } from "../model/series.ts";
import type { TimeRange } from "../model/time-range.ts";

/** The settings' own names for streams; one may stand for several. */
const keys: Readonly<Record<string, readonly Stream[]>> = {
  lookups: ["assets", "markets", "exchanges"],
  intraday: ["index_ticks"],
  exchangeTickers: ["exchange_ticks"],
  marketCap: ["market_caps"],
  derivatives: ["derivative_contracts", "derivative_ticks"],
};

/** The streams that `--stream` names, by their own name or by their setting's; undefined: none was given. */
export function readStreams(names: readonly string[]): ReadonlySet<Stream> | undefined {
  if (names.length === 0) return undefined;
  return new Set(
    names.flatMap((name) => {
      const found = streams.filter((stream) => stream === name);
      const known = found.length > 0 ? found : keys[name];
      return known ?? wrong(name);
    }),
  );
}

/** `[from, to)`; undefined when neither was given. */
export function readWindow(from: string | undefined, to: string | undefined): TimeRange | undefined {
  if (from === undefined && to === undefined) return undefined;
  const window = {
    from: from === undefined ? Number.MIN_SAFE_INTEGER : moment("--from", from),
    to: to === undefined ? Number.MAX_SAFE_INTEGER : moment("--to", to),
  };
  if (window.from >= window.to)
    throw usage(`--from ${from} is not before --to ${to}`, "windows are [from, to)");
  return window;
}

/** For options that may be given several times. */
export function collect(value: string, earlier: readonly string[]): readonly string[] {
  return [...earlier, value];
}

function moment(flag: string, text: string): number {
  return (
    parseDayOrInstant(text) ??
    raise(usage(`${flag} cannot be ${text}`, "give YYYY-MM-DD or an ISO 8601 moment in UTC"))
  );
}

function wrong(name: string): never {
  const meant = nearest(name, [...streams, ...Object.keys(keys)]);
  throw usage(`--stream: there is no stream ${name}`, meant ? `did you mean ${meant}?` : streams.join(", "));
}

function raise(failure: Failure): never {
  throw failure;
}

function usage(message: string, remedy: string): Failure {
  return new Failure(message, { family: "operator", code: "usage", remedy, exit: exitCode.usage });
}
