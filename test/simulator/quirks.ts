import { choice, defaultChoices } from "../../src/api-server/choices.ts";

/** The choices that the specification leaves open, as switches, with their defaults: those of the server and of the market. */
export const defaultQuirks = {
  ...defaultChoices,
  /** Whether the `timestamp` of /ohlcv is compared with a bar's start or its end. */
  ohlcvTimestamp: choice<"start" | "end">("start"),
  /** A bar's endTimestamp: one millisecond before midnight, or midnight. */
  barEnd: choice<"23:59:59.999" | "midnight">("23:59:59.999"),
  /** Whether a bar also carries `timestamp` (its start). */
  barTimestamp: false,
  /** Whether today's unfinished bar is served. */
  partialBar: true,
  /** Of every thousand index ticks, `perMille` become visible only `seconds` after their timestamp. */
  late: { perMille: 0, seconds: 0 },
  /** Number of missing index ticks per thousand. */
  missingPerMille: 0,
  /** Of every thousand indices, `perMille` were listed on this day (`2026-02-27`) and have no older records. */
  listed: { perMille: 0, on: "1970-01-01" },
  /** On so many days of each week (from Thursday) there are no index ticks. */
  closedDays: 0,
  /** Of every thousand index ticks, `perMille` first have a wrong price, which is corrected after `minutes`. */
  corrections: { perMille: 0, minutes: 0 },
  /** Number of strikes that an exchange lists for each expiry of its options. */
  optionStrikes: 9,
  /** Tokens contain characters that must be encoded in a URL. */
  awkwardTokens: false,
};

export type Quirks = typeof defaultQuirks;
