import { expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { fillEverything } from "../support/export/sample-data.ts";
import { openClient, usePostgres } from "../support/postgres.ts";
import { HOURS_BEGIN, openShared } from "../support/share/share-harness.ts";
import { tick } from "../support/warehouse/records.ts";
import { storeTicks } from "../support/warehouse/write-records.ts";

const server = usePostgres();
const HOUR = 3_600_000_000;

interface CommitNotice {
  readonly stream: string;
  readonly name: string | null;
  readonly from_ts: number;
  readonly to_ts: number;
}

it("tells who listens which range of which name each commit has changed", async () => {
  const { warehouse, database, forward } = await openShared(server, { hours: 2, clock: systemClock });
  const client = await openClient(server, database);
  const notices: CommitNotice[] = [];
  client.on("notification", ({ payload }) => notices.push(JSON.parse(payload ?? "") as CommitNotice));
  await client.query("LISTEN mds_commits");
  const listen = async () => {
    await client.query("SELECT 1");
    return notices.splice(0);
  };
  await forward();
  const range = { from_ts: HOURS_BEGIN, to_ts: HOURS_BEGIN + 2 * HOUR };
  expect(await listen()).toEqual([{ stream: "index_ticks", name: "btc-id", ...range }]);
  await forward();
  expect(await listen()).toEqual([]);
  storeTicks(warehouse, [tick(HOURS_BEGIN + HOUR, "7")]);
  await forward();
  const [corrected] = await listen();
  expect(corrected?.from_ts).toBeLessThanOrEqual(HOURS_BEGIN + HOUR);
  expect(corrected?.to_ts).toBeGreaterThan(HOURS_BEGIN + HOUR);
  // Many names of one commit are told in one line.
  const times = Array.from({ length: 21 }, (_, i) => HOURS_BEGIN + 3 * HOUR + i);
  storeTicks(
    warehouse,
    times.map((ts, i) => tick(ts, "7", { indexId: `many-${i}` })),
  );
  await forward();
  expect(await listen()).toEqual([
    { stream: "index_ticks", name: null, from_ts: times[0], to_ts: (times[20] ?? 0) + 1 },
  ]);
  warehouse.transaction(fillEverything);
  await forward();
  const streams = new Set((await listen()).map(({ stream }) => stream));
  expect(streams).toEqual(
    new Set(["index_ticks", "exchange_ticks", "derivative_ticks", "market_caps", "ohlcv"]),
  );
});
