import type { Command } from "commander";
import { findTimeZone, utcZone } from "../../library/reading/time-zone.ts";
import { suggestWord } from "../../model/did-you-mean.ts";
import { usageFailure } from "../../model/failure.ts";
import { type Stream, streams, streamTable } from "../../model/streams.ts";
import { MICROS_PER_MS, type Micros, parseUserTime, USER_TIME_FORMS } from "../../model/time.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { RunFilter } from "../../sync/history/run-filter.ts";
import { collectValues } from "./flags.ts";

/** The flags that limit a command to a part of the warehouse, as commander returns them. */
export interface SelectionFlags {
  readonly stream?: readonly string[];
  readonly series?: readonly string[];
  readonly from?: string;
  readonly to?: string;
  /** The zone of both. */
  readonly tz?: string;
}

export type SelectionFilter = ReturnType<typeof readSelection>;

/** The keys below `sync` in the settings, with the streams that each selects. */
const STREAMS_BY_SETTING = Map.groupBy(streams, (stream): string => streamTable[stream].setting);

export function addSelectionFlags(command: Command): Command {
  return command
    .option("--stream <name>", "a stream, or its key in the settings; may be repeated", collectValues)
    .option(
      "--series <id-or-name>",
      "an id, symbol, pair or name, also GWA:BTC; may be repeated",
      collectValues,
    )
    .option("--from <time>", "start of the range, inclusive, such as 2026-03-01, '2026-03-01 12:00' or -7d")
    .option("--to <time>", "end of the range, exclusive: as --from, or now");
}

/** What the flags select, series as they are given; undefined: all of it. */
export function readSelection(flags: SelectionFlags, clock: Pick<Clock, "now">) {
  const selected = new Set(flags.stream?.flatMap(resolveStreams));
  const { momentOf } = findTimeZone(flags.tz);
  const from = flags.from === undefined ? undefined : readTimestamp("--from", flags.from, clock, momentOf);
  const to = flags.to === undefined ? undefined : readTimestamp("--to", flags.to, clock, momentOf);
  if (from !== undefined && to !== undefined && from >= to) {
    throw usageFailure(`--from ${flags.from} is not before --to ${flags.to}`, "a range is [from, to)");
  }
  return {
    streams: selected.size > 0 ? streams.filter((stream) => selected.has(stream)) : undefined,
    series: flags.series,
    from,
    to,
  };
}

/** Limits a run of `backfill` to the selection of the flags. */
export function toRunFilter({ streams, series, from, to }: SelectionFilter): RunFilter {
  const hasRange = from !== undefined || to !== undefined;
  const range = { from: from ?? Number.MIN_SAFE_INTEGER, to: to ?? Number.MAX_SAFE_INTEGER };
  return { streams, series, range: hasRange ? range : undefined };
}

function resolveStreams(name: string): readonly Stream[] {
  const stream = streams.find((known) => known === name);
  if (stream) return [stream];
  const settingStreams = STREAMS_BY_SETTING.get(name);
  if (settingStreams) return settingStreams;
  const known = [...streams, ...STREAMS_BY_SETTING.keys()];
  throw usageFailure(
    `--stream cannot be ${name}`,
    suggestWord(name, known, `give one of ${streams.join(", ")}`),
  );
}

export function readTimestamp(
  flag: string,
  text: string,
  clock: Pick<Clock, "now">,
  momentOf = utcZone.momentOf,
): Micros {
  const timestamp = parseUserTime(text, Math.floor(clock.now()) * MICROS_PER_MS, momentOf);
  if (timestamp !== undefined) return timestamp;
  throw usageFailure(`${flag} cannot be ${text}`, `give ${USER_TIME_FORMS}`);
}
