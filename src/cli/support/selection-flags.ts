import type { Command } from "commander";
import { nearest } from "../../model/did-you-mean.ts";
import { type Stream, streams, streamTable } from "../../model/streams.ts";
import { type Micros, parseDayOrInstant } from "../../model/time.ts";
import { usageFailure } from "./context.ts";

/** The flags with which a command is confined to a part of the warehouse, as commander hands them over. */
export interface SelectionFlags {
  readonly stream?: readonly string[];
  readonly series?: readonly string[];
  readonly from?: string;
  readonly to?: string;
}

export interface Selection {
  /** Undefined: all of them. */
  readonly streams: readonly Stream[] | undefined;
  /** Ids, symbols, pairs or names as given. Undefined: all of them. */
  readonly series: readonly string[] | undefined;
  readonly from: Micros | undefined;
  readonly to: Micros | undefined;
}

/** The settings' keys below `sync`, and the streams that each stands for. */
const streamsOfSetting = Map.groupBy(streams, (stream): string => streamTable[stream].setting);

export function addSelectionFlags(command: Command): Command {
  return command
    .option("--stream <name>", "a stream, or its key in the settings; may be repeated", collect)
    .option("--series <id-or-name>", "an id, symbol, pair or name; may be repeated", collect)
    .option("--from <time>", "YYYY-MM-DD or ISO 8601 in UTC; belongs to the window")
    .option("--to <time>", "YYYY-MM-DD or ISO 8601 in UTC; does not belong to the window");
}

export function readSelection(flags: SelectionFlags): Selection {
  const named = new Set(flags.stream?.flatMap(streamsNamed));
  const from = flags.from === undefined ? undefined : readMoment("--from", flags.from);
  const to = flags.to === undefined ? undefined : readMoment("--to", flags.to);
  if (from !== undefined && to !== undefined && from >= to) {
    throw usageFailure(`--from ${flags.from} is not before --to ${flags.to}`, "a window is [from, to)");
  }
  return {
    streams: named.size > 0 ? streams.filter((stream) => named.has(stream)) : undefined,
    series: flags.series,
    from,
    to,
  };
}

function streamsNamed(name: string): readonly Stream[] {
  const stream = streams.find((known) => known === name);
  if (stream) return [stream];
  const ofSetting = streamsOfSetting.get(name);
  if (ofSetting) return ofSetting;
  const meant = nearest(name, [...streams, ...streamsOfSetting.keys()]);
  throw usageFailure(
    `--stream cannot be ${name}`,
    meant ? `did you mean ${meant}?` : `give one of ${streams.join(", ")}`,
  );
}

/** A moment as the flags take it. */
export function readMoment(flag: string, text: string): Micros {
  const moment = parseDayOrInstant(text);
  if (moment !== undefined) return moment;
  throw usageFailure(
    `${flag} cannot be ${text}`,
    "give YYYY-MM-DD, or a moment in UTC such as 2026-03-01T12:00:00Z",
  );
}

/** For options that may be given several times. */
export function collect(value: string, earlier: readonly string[] = []): string[] {
  return [...earlier, value];
}
