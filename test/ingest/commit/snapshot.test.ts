import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { type SnapshotPart, SnapshotValidator } from "../../../src/ingest/commit/snapshot.ts";
import { MICROS_PER_SECOND, parseTimestamp } from "../../../src/model/time.ts";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const at = (time: string) => parseTimestamp(`2026-03-01T${time}Z`) ?? 0;

function observing() {
  const clock = { now: () => at("12:10:07") / 1000 };
  const warehouse = openWriter(join(temporaryFolder(), "mds.sqlite"), { clock });
  onTestFinished(() => warehouse.close());
  const lists = new SnapshotValidator();
  return {
    see: (...seen: SnapshotPart[]) =>
      lists.commit(warehouse, {
        stream: "derivative_ticks",
        exchangeId: "deribit",
        cadence: 60 * MICROS_PER_SECOND,
        parts: seen,
      }),
    covered: () =>
      warehouse.connection.database
        .prepare("SELECT substr(from_time, 12, 5), substr(to_time, 12, 5), proof FROM coverage ORDER BY 1")
        .raw()
        .all(),
  };
}

function list(listed: number, time: string, part = "futures"): SnapshotPart {
  const moments = listed === 0 ? [] : [at(time)];
  return { part, listed, rejected: 0, timestamps: moments, storedTimestamps: moments };
}

it("a list that has become less than half of what it was is believed when it comes a second time", () => {
  const { see, covered } = observing();
  expect(see(list(100, "12:00:00"))).toBeUndefined();
  expect(see(list(50, "12:01:00"))).toBeUndefined();
  expect(see(list(24, "12:02:00"))).toBe("shrunken");
  expect(see(list(60, "12:03:00"))).toBeUndefined();
  expect(see(list(24, "12:04:00"))).toBe("shrunken");
  expect(see(list(24, "12:05:00"))).toBeUndefined();
  expect(see(list(24, "12:06:00"))).toBeUndefined();
  expect(covered()).toEqual([
    ["12:00", "12:02", "rows"],
    ["12:03", "12:04", "rows"],
    ["12:05", "12:07", "rows"],
  ]);
  // One list of several is enough.
  expect(see(list(24, "12:07:00"), list(9, "12:07:00", "options"))).toBeUndefined();
  expect(see(list(24, "12:08:00"), list(0, "12:08:00", "options"))).toBe("shrunken");
});

it("C16: lists of two moments are claimed for the older one", () => {
  const { see, covered } = observing();
  see(list(5, "11:59:30"), list(5, "12:00:00", "options"), list(0, "", "perpetuals"));
  expect(covered()).toEqual([["11:59", "12:00", "rows"]]);
});

it("a list of a market that stands still holds back none of the others", () => {
  const { see, covered } = observing();
  for (const time of ["12:00:00", "12:01:00", "12:02:00"])
    see(list(5, "11:45:00"), list(5, time, "perpetuals"));
  expect(covered()).toEqual([["12:00", "12:03", "rows"]]);
});

it("nothing where rows were seen in the same period takes none of them back", () => {
  const { see, covered } = observing();
  see(list(5, "12:09:30"));
  see(list(5, "12:10:01"));
  expect(see(list(0, ""))).toBe("empty");
  expect(see(list(0, ""))).toBeUndefined();
  expect(covered()).toEqual([["12:09", "12:11", "rows"]]);
});
