import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import type { ShareReport } from "../../src/share/thread/share-messages.ts";
import { researchViews } from "../../src/warehouse/views/research-views.ts";
import { fillEverything, filledRelations } from "../support/export/sample-data.ts";
import { openClient, usePostgres } from "../support/postgres.ts";
import { addHours, HOURS_BEGIN, openShared } from "../support/share/share-harness.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { fillOddMarket } from "../support/warehouse/odd-market.ts";
import { tick } from "../support/warehouse/records.ts";
import { storeTicks } from "../support/warehouse/write-records.ts";

const server = usePostgres();

const HOUR = 3_600_000_000;

const relations = [...filledRelations, "gaps"];

describe("forwarding", () => {
  it("can be stopped between two transactions, and goes on with the next forwarder", async () => {
    const { forward, open, query } = await openShared(server, { hours: 170, clock: systemClock });
    const stop = new AbortController();
    const more = { signal: stop.signal, report: ({ kind }: ShareReport) => kind === "rows" && stop.abort() };
    const share = await open(more);
    await expect(share.forwarder.forward()).rejects.toThrow("aborted");
    await share.close();
    const [found] = await query(`SELECT (SELECT count(*)::integer FROM mds.index_tick_rows) AS rows,
        (SELECT (max(to_ts) - min(from_ts))::double precision / 30000000 FROM mds.settled_ranges) AS proven`);
    expect(found).toEqual({ rows: 20_000, proven: 20_000 });
    expect(await forward()).toMatchObject({ rows: 400 });
  });

  it("forwards once what is committed while it loads", async () => {
    const { warehouse, open, query } = await openShared(server, { hours: 170, clock: systemClock });
    let isFirst = true;
    const report = ({ kind }: ShareReport) => {
      if (kind !== "rows") return;
      if (isFirst) addHours(warehouse, 170, 10);
      isFirst = false;
    };
    const share = await open({ report });
    const rows = (await share.forwarder.forward()).rows + (await share.forwarder.forward()).rows;
    await share.close();
    expect(rows).toBe(180 * 120);
    const [found] = await query("SELECT count(*)::integer AS rows FROM mds.index_tick_rows");
    expect(found).toEqual({ rows });
  });

  it("copies lookups that came after its start within a minute", async () => {
    const { warehouse, database, open } = await openShared(server, { clock: systemClock });
    let passedMs = 0;
    const clock = { ...systemClock, monotonic: () => passedMs };
    const share = await open({ clock });
    const countAssets = () =>
      server
        .query(database, "SELECT count(*)::integer AS assets FROM mds.assets")
        .then(([row]) => row?.assets);
    await share.forwarder.forward();
    expect(await countAssets()).toBe(0);
    warehouse.transaction(fillEverything);
    passedMs += 60_000;
    await share.forwarder.forward();
    expect(await countAssets()).toBeGreaterThan(0);
    await share.close();
  });

  it("copies every row, range and digit of all streams, and the second time nothing", async () => {
    const { warehouse, forward, expectSame } = await openShared(server, {
      clock: systemClock,
      hasAllViews: true,
    });
    warehouse.transaction(fillEverything);
    const first = await forward();
    expect(first.rows).toBeGreaterThan(600);
    for (const relation of relations) await expectSame(relation);
    const second = await forward();
    expect(second).toMatchObject({ rows: 0, ranges: 0, relations: 0, commits: 0 });
  });

  it("has the research views of the warehouse with the same rows", async () => {
    const path = `${temporaryFolder()}/mds.sqlite`;
    fillOddMarket(path);
    const { forward, expectSame } = await openShared(server, { path, clock: systemClock });
    await forward();
    for (const view of [...Object.keys(researchViews), "shared_names"])
      expect(await expectSame(view), view).toBeGreaterThan(0);
  });
});

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
