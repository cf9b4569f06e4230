import type { Failure } from "../model/failure.ts";
import { parseDayOrInstant } from "../model/instant.ts";
import type { Parameters } from "../warehouse/query.ts";
import { usageFailure } from "./usage-failure.ts";

/** Reads `name=value` pairs. Whole and decimal numbers are numbers, `@` and a moment its microseconds, all else text. */
export function readParameters(given: readonly string[]): Parameters {
  return Object.fromEntries(
    given.map((pair) => {
      const [, name, value] = /^[:@$]?(\w+)=(.*)$/s.exec(pair) ?? [];
      if (name === undefined || value === undefined) throw wrong(pair, "give NAME=VALUE");
      return [name, readValue(pair, value)];
    }),
  );
}

function readValue(pair: string, value: string): string | number | bigint {
  if (/^-?(0|[1-9]\d{0,17})$/.test(value)) return BigInt(value);
  if (/^-?(0|[1-9]\d*)\.\d+$/.test(value)) return Number(value);
  if (!value.startsWith("@")) return value;
  const ts = parseDayOrInstant(value.slice(1));
  if (ts === undefined) throw wrong(pair, "after @ give YYYY-MM-DD, or a moment in UTC");
  return BigInt(ts);
}

function wrong(pair: string, remedy: string): Failure {
  return usageFailure(`--param cannot be ${pair}`, remedy);
}
