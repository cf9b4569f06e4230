import { expect, it } from "vitest";
import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { settleSnapshot } from "../../../src/warehouse/coverage/snapshot-coverage.ts";
import { readStatus } from "../../../src/warehouse/read/status.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";

const CADENCE = 30 * MICROS_PER_SECOND;

it("the status stays fast with thousands of short lost ranges", () => {
  const warehouse = openTestWarehouse({ clock: systemClock });
  const present = Math.floor(systemClock.now()) * 1_000;
  const lostRanges = 25_000;
  warehouse.transaction((transaction) => {
    for (let i = lostRanges; i > 0; i--) {
      const at = present - i * CADENCE;
      settleSnapshot(transaction, {
        stream: "exchange_ticks",
        exchangeId: null,
        at,
        cadence: CADENCE - 1_000,
      });
    }
  });
  const { connection } = warehouse;
  const measureCpu = (read: () => unknown) => {
    const before = process.threadCpuUsage();
    read();
    const { user, system } = process.threadCpuUsage(before);
    return user + system;
  };
  const status = readStatus(connection, present).streams.find(({ stream }) => stream === "exchange_ticks");
  expect(status).toMatchObject({ open: 0, lost_seconds: 25 });
  expect(status?.lost).toBeGreaterThan(lostRanges - 5);
  // The view seeks for each range. Compare with it on the same machine instead of an absolute limit.
  const viewCpu = measureCpu(() => queryRows(warehouse, "SELECT count(*) FROM gaps"));
  const statusCpu = [1, 2, 3].map(() => measureCpu(() => readStatus(connection, present)));
  expect(Math.min(...statusCpu)).toBeLessThan(0.7 * viewCpu);
});
