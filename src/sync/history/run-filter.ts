import { hasHistory, type Stream, streams, streamTable } from "../../model/streams.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { ConfirmationRules } from "../../rule/confirm.ts";
import type { SeriesGaps } from "../../warehouse/coverage/series-gaps.ts";
import { namedKeyText } from "../../warehouse/coverage/series-queries.ts";
import { readConfirmations } from "../../warehouse/read/status.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SyncSettings } from "../context/context.ts";
import type { NamedIndex } from "../selection/named-series.ts";
import type { StreamTargets } from "../selection/targets.ts";
import type { GapFilter } from "./walk-planner.ts";

/** Limits what one run fills, and what is planned of it. An absent member means no limit. */
export interface RunFilter {
  readonly streams?: readonly Stream[] | undefined;
  /** Symbols, pairs, names or ids of indices. */
  readonly series?: readonly string[] | undefined;
  readonly range?: TimeRange | undefined;
}

/** Whether the run fetches the stream. Only a history has series and ranges. */
export function isInRun({ streams: given, series, range }: RunFilter, stream: Stream): boolean {
  return given?.includes(stream) ?? ((series === undefined && range === undefined) || hasHistory(stream));
}

/** Nothing is left out: such a run also asks again about what is settled. */
export function isWholeRun(filter: RunFilter): boolean {
  return streams.every((stream) => isInRun(filter, stream)) && filter.streams === undefined;
}

/** `named`: the indices of `series`. */
export function toGapFilter(filter: RunFilter, named: readonly NamedIndex[] | undefined): GapFilter {
  return {
    streams: new Set(streams.filter((stream) => isInRun(filter, stream))),
    indexIds: named && new Set(named.map(({ indexId }) => indexId)),
    range: filter.range,
  };
}

/** The streams of the run whose series may be named. */
export function selectNameableStreams(
  targets: readonly StreamTargets[],
  { streams: given }: RunFilter,
  { streams: settings }: SyncSettings,
): StreamTargets[] {
  return targets.filter(
    ({ stream }) => given?.includes(stream) ?? settings[streamTable[stream].setting] !== false,
  );
}

/** What the service must repeat about these gaps, and when it is asked. */
export function summarizeClaims(reader: Connection, gaps: readonly SeriesGaps[], rules: ConfirmationRules) {
  const unconfirmed = gaps.filter((series) => series.unconfirmed.length > 0);
  const keys = unconfirmed.map(({ key: { stream }, indexType, indexId }) =>
    namedKeyText({ stream, index_type: indexType, index_id: indexId }),
  );
  const claimed = unconfirmed.map(({ unconfirmedReason }) => ({ reason: unconfirmedReason }));
  return readConfirmations(reader, claimed, rules, new Set(keys));
}
