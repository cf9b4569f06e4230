import { expect, it } from "vitest";
import { findLateness } from "../../../src/ingest/commit/stored-series.ts";
import type { HistoryStream } from "../../../src/model/streams.ts";
import { readLateness, recordPublication } from "../../../src/warehouse/coverage/publication.ts";
import { recordStreamTiming } from "../../../src/warehouse/rows/stream-stats.ts";
import { makeEmptyWarehouse } from "../../support/ingest/ingest-harness.ts";
import { at, SECOND } from "../../support/ingest/pages.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { tick } from "../../support/warehouse/records.ts";
import { settle } from "../../support/warehouse/settle.ts";
import { writeTicks } from "../../support/warehouse/write-records.ts";

const noon = at("12:00:00");

interface Case {
  /** Up to where REST had shown records, and when it was asked; null: never. */
  readonly shown?: { readonly to: number; readonly askedAt: number } | null;
  readonly settled?: readonly (readonly [from: number, to: number])[];
  readonly stored?: readonly number[];
  readonly settleDelay?: number;
  readonly stream?: HistoryStream;
}

/** How late a page of the head shows records to be, in seconds; all times are ages in seconds, at noon. */
function seeLateness(ages: readonly number[], more: Case): number | undefined {
  const { shown = { to: 0, askedAt: 0 }, settled = [[5000, 600]], stored = [] } = more;
  const { settleDelay = 600, stream = "index_ticks" } = more;
  const ago = (age: number) => noon - age * SECOND;
  const warehouse = openTestWarehouse({ path: makeEmptyWarehouse() });
  warehouse.transaction((t) => {
    const key = { stream, series: t.dictionary.getSeriesKey("GWA", "btc-id") };
    if (shown) {
      const asked = { askedAt: ago(shown.askedAt), askedTo: noon, quietMargin: 0 };
      recordPublication(t, key, { publishedTo: ago(shown.to), ...asked });
    }
    t.markWritten(stream, key.series);
    for (const [from, to] of settled) settle(t, key, { from: ago(from), to: ago(to) }, "rows");
    writeTicks(
      t,
      stored.map((age) => tick(ago(age), "1")),
    );
    const rules = { period: 30 * SECOND, settleDelay: settleDelay * SECOND };
    const lateness = findLateness(t, key, { timestamps: ages.map(ago), asOf: noon, ...rules });
    if (lateness) recordStreamTiming(t, stream, lateness);
  });
  const found = readLateness(warehouse.connection, stream);
  if (found) expect(found.lateAt).toBe(noon);
  return found && found.lateBy / SECOND;
}

const twoRanges = { settled: [[5000, 1000] as const, [800, 750] as const] };
const hour = { settleDelay: 3600 };

it.each<[what: string, ages: readonly number[], more: Case, lateBy: number | undefined]>([
  ["are late by their age and a quarter: the oldest counts", [700, 720, 800], {}, 1000],
  ["are not late, if they are stored", [700, 720, 800], { stored: [800] }, 900],
  ["are none, if all are stored", [700, 720, 800], { stored: [700, 720, 800] }, undefined],
  ["are none on an empty page", [], {}, undefined],
  ["are late by at most two hours", [4000, 7000], { ...hour, settled: [[7100, 900]] }, 7200],
  ["say nothing, if they are older than that", [700, 7201], { ...hour, settled: [[9000, 900]] }, undefined],
  ["are in a range that was settled", [760], twoRanges, 950],
  ["may be its first", [800], twoRanges, 1000],
  ["are not in an open range", [900], twoRanges, undefined],
  ["are not just above a range", [1000], twoRanges, undefined],
  ["or are above all ranges", [750], twoRanges, 937.5],
  ["are not late, if nothing was settled", [700], { settled: [] }, undefined],
  ["were final by the settle delay", [601], {}, 751.25],
  ["are not late before that", [600], {}, undefined],
  ["were final when the service was asked", [701], { shown: { to: 0, askedAt: 100 } }, 876.25],
  ["are not late, if they were younger then", [700], { shown: { to: 0, askedAt: 100 } }, undefined],
  ["are older than what the service had shown", [701], { shown: { to: 701, askedAt: 0 } }, undefined],
  ["are not late, if it was never asked", [701], { shown: null }, undefined],
  ["are no bars", [700, 720], { stream: "ohlcv" }, undefined],
])("records that an earlier page of the head lacked %s", (_, ages, more, lateBy) => {
  expect(seeLateness(ages, more)).toBe(lateBy);
});
