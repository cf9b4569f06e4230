import { MOVED_REASON } from "../warehouse/coverage/ledger.ts";
import { type PeriodUnit, periodOf, periodRange } from "../warehouse/read/export-periods.ts";
import type { MovedRange } from "../warehouse/rows/moved-rows.ts";
import { movedFileMissing } from "./errors.ts";
import type { ExportStore } from "./export-store.ts";
import { type FileWriter, periodPartition } from "./file-writer.ts";
import { filePeriod, type ManifestFile } from "./manifest.ts";

/** The files that have more than an hour. */
export function uncutFiles({ previous }: ExportStore, stream: string): ManifestFile[] {
  const files = previous?.files.filter(({ relation }) => relation === stream) ?? [];
  return files.filter((file) => file.slice?.length !== periodOf("hour", 0).length);
}

/** The unit of the files that the store has of a stream. */
export function usedUnit({ previous }: ExportStore, stream: string): PeriodUnit | undefined {
  const file = previous?.files.find(({ relation }) => relation === stream);
  return file && filePeriod(file).unit;
}

/**
 * Takes over the files of periods of which the warehouse has no rows any more. Returns the ranges that this place does
 * not have; fails if it is the place where they were moved.
 */
export function reuseMovedPeriods(
  fileWriter: FileWriter,
  { place }: ExportStore,
  unit: PeriodUnit,
  moved: readonly MovedRange[],
): MovedRange[] {
  const unavailable: MovedRange[] = [];
  const pieces = moved.flatMap((range) => cutIntoPeriods(unit, range));
  for (const [name, own] of Map.groupBy(pieces, ({ indexType, period }) => `${indexType} ${period}`)) {
    const [{ indexType: part, period } = { indexType: "", period: "" }] = own;
    const partition = periodPartition({ stream: "index_ticks", part, unit, period });
    if (fileWriter.reuseMoved({ relation: "index_ticks", partition }, own)) continue;
    if (own.some(({ reason }) => reason === MOVED_REASON + place))
      throw movedFileMissing(place, `index_ticks of ${name}`);
    unavailable.push(...own);
  }
  return unavailable;
}

function cutIntoPeriods(unit: PeriodUnit, range: MovedRange): (MovedRange & { readonly period: string })[] {
  const pieces = [];
  for (let at = range.from; at < range.to; ) {
    const period = periodOf(unit, at);
    const to = Math.min(periodRange(period).to, range.to);
    pieces.push({ ...range, from: at, to, period });
    at = to;
  }
  return pieces;
}
