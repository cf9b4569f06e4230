import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { type SnapshotPart, SnapshotValidator } from "../../../src/ingest/commit/snapshot.ts";
import { MICROS_PER_SECOND, parseTimestamp } from "../../../src/model/time.ts";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const at = (time: string) => parseTimestamp(`2026-03-01T${time}Z`) ?? 0;

function createValidator() {
  const clock = { now: () => at("12:10:07") / 1000 };
  const warehouse = openWriter(join(temporaryFolder(), "mds.sqlite"), { clock });
  onTestFinished(() => warehouse.close());
  const validator = new SnapshotValidator();
  return {
    commit: (...parts: SnapshotPart[]) =>
      validator.commit(warehouse, {
        stream: "derivative_ticks",
        exchangeId: "deribit",
        cadence: 60 * MICROS_PER_SECOND,
        parts,
      }),
    covered: () =>
      warehouse.connection.database
        .prepare("SELECT substr(from_time, 12, 5), substr(to_time, 12, 5), proof FROM coverage ORDER BY 1")
        .raw()
        .all(),
  };
}

function part(listed: number, time: string, name = "futures"): SnapshotPart {
  const timestamps = listed === 0 ? [] : [at(time)];
  return { part: name, listed, rejected: 0, timestamps, storedTimestamps: timestamps };
}

it("a snapshot with less than half the records counts only when it comes a second time", () => {
  const { commit, covered } = createValidator();
  expect(commit(part(100, "12:00:00"))).toBeUndefined();
  expect(commit(part(50, "12:01:00"))).toBeUndefined();
  expect(commit(part(24, "12:02:00"))).toBe("shrunken");
  expect(commit(part(60, "12:03:00"))).toBeUndefined();
  expect(commit(part(24, "12:04:00"))).toBe("shrunken");
  expect(commit(part(24, "12:05:00"))).toBeUndefined();
  expect(commit(part(24, "12:06:00"))).toBeUndefined();
  expect(covered()).toEqual([
    ["12:00", "12:02", "rows"],
    ["12:03", "12:04", "rows"],
    ["12:05", "12:07", "rows"],
  ]);
  // One shrunken part is enough.
  expect(commit(part(24, "12:07:00"), part(9, "12:07:00", "options"))).toBeUndefined();
  expect(commit(part(24, "12:08:00"), part(0, "12:08:00", "options"))).toBe("shrunken");
});

it("C16: a snapshot whose parts differ in age covers the time of the older one", () => {
  const { commit, covered } = createValidator();
  commit(part(5, "11:59:30"), part(5, "12:00:00", "options"), part(0, "", "perpetuals"));
  expect(covered()).toEqual([["11:59", "12:00", "rows"]]);
});

it("a part of a market that does not trade does not delay the others", () => {
  const { commit, covered } = createValidator();
  for (const time of ["12:00:00", "12:01:00", "12:02:00"])
    commit(part(5, "11:45:00"), part(5, time, "perpetuals"));
  expect(covered()).toEqual([["12:00", "12:03", "rows"]]);
});

it("an empty snapshot in a period with rows retracts nothing", () => {
  const { commit, covered } = createValidator();
  commit(part(5, "12:09:30"));
  commit(part(5, "12:10:01"));
  expect(commit(part(0, ""))).toBe("empty");
  expect(commit(part(0, ""))).toBeUndefined();
  expect(covered()).toEqual([["12:09", "12:11", "rows"]]);
});
