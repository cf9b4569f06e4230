import { beforeAll, describe, expect, it } from "vitest";
import { emptyRecord } from "../../support/empty-record.ts";
import { TickServer } from "../../support/serve/tick-server.ts";
import { WebSocketClient } from "../../support/simulator/websocket-client.ts";
import { STEP } from "../../support/warehouse/filled-warehouse.ts";
import { decimal, parseTs } from "../../support/warehouse/records.ts";
import { settleSnapshot } from "../../support/warehouse/settle-snapshot.ts";
import { writeRecords } from "../../support/warehouse/write-records.ts";

const fixture = new TickServer();
const at = (time: string) => parseTs(`2026-02-01T${time}Z`);
const hours = (from: string, to: string) =>
  Array.from({ length: (at(to) - at(from)) / STEP }, (_, i) => at(from) + i * STEP);

/** `a` is whole from 08:00 to 12:00; `b` lacks 09:00 to 10:00, and lost 10:30 to 11:00. */
beforeAll(async () => {
  fixture.select(["a", "b"], at("08:00:00"));
  fixture.writeTicks(["a"], hours("08:00:00", "12:00:00"));
  fixture.writeTicks(
    ["b"],
    [...hours("08:00:00", "09:00:00"), ...hours("10:00:00", "10:30:00"), ...hours("11:00:00", "12:00:00")],
  );
  fixture.cover("a", at("08:00:00"), at("12:00:00"));
  fixture.cover("b", at("08:00:00"), at("09:00:00"));
  fixture.cover("b", at("10:00:00"), at("10:30:00"));
  fixture.cover("b", at("10:30:00"), at("11:00:00"), "lost");
  fixture.cover("b", at("11:00:00"), at("12:00:00"));
  await fixture.start();
});

async function replay(
  query: string,
  subscriptions: readonly object[] = [{ indexType: "GWA" }],
): Promise<WebSocketClient> {
  const client = await fixture.connect(`?${query}`);
  for (const body of subscriptions) await fixture.subscribe(client, { ...body });
  return client;
}

const RANGE = "from=2026-02-01T07:00:00Z&to=2026-02-01T12:00:00Z";
const timed = (client: WebSocketClient) =>
  client.messages.filter(({ event }) => event === "INDEX_TICKER" || event === "GAP");

describe("a replay", () => {
  it("sends every stored tick in the order of time, and announces every gap where it begins", async () => {
    const client = await replay(`${RANGE}&speed=max`);
    const [end] = await client.waitFor("REPLAY_ENDED");
    const ticks = client.messagesOf("INDEX_TICKER");
    const stored = fixture.warehouse.connection.database
      .prepare(
        "SELECT s.index_id, r.ts FROM index_tick_rows r JOIN series s USING (series) ORDER BY r.ts, r.series",
      )
      .raw()
      .all() as [string, number][];
    expect(ticks.map(({ indexId, timestamp }) => [indexId, parseTs(String(timestamp))])).toEqual(stored);
    expect(end).toMatchObject({ ticks: stored.length, gaps: 4 });
    const order = timed(client).map(({ timestamp }) => String(timestamp));
    expect(order).toEqual(order.toSorted());
    const gaps = client
      .messagesOf("GAP")
      .map(({ indexId, from, to, state, reason }) => [
        indexId,
        String(from).slice(11, 19),
        String(to).slice(11, 19),
        state,
        reason,
      ]);
    expect(gaps).toEqual([
      ["a", "07:00:00", "08:00:00", "lost", "not followed"],
      ["b", "07:00:00", "08:00:00", "lost", "not followed"],
      ["b", "09:00:00", "10:00:00", "open", "not covered"],
      ["b", "10:30:00", "11:00:00", "lost", "aged out"],
    ]);
  });

  it("gives the same messages each time, also with a subscription at a time", async () => {
    const bodies = [{ indexId: "a" }, { indexId: "b" }];
    const runs = [];
    for (const [query, subscriptions] of [
      ["speed=max", [{ indexType: "GWA" }]],
      ["speed=max&wait=2", bodies],
      ["speed=max&wait=2", bodies.toReversed()],
    ] as const) {
      const client = await replay(`${RANGE}&${query}`, subscriptions);
      await client.waitFor("REPLAY_ENDED");
      runs.push(timed(client));
    }
    expect(runs[1]).toEqual(runs[0]);
    expect(runs[2]).toEqual(runs[0]);
  });

  it("begins with the Nth subscription: a repeated one and one that was ended do not count", async () => {
    const client = await replay(`${RANGE}&speed=max&wait=2`, [{ indexId: "a" }, { indexId: "a" }]);
    client.send({ event: "UNSUBSCRIBE_INDEX_TICKER", indexId: "b" });
    await fixture.settle(client);
    expect(timed(client)).toEqual([]);
    await fixture.subscribe(client, { indexId: "b" });
    expect(await client.waitFor("REPLAY_ENDED")).toMatchObject([{ gaps: 4 }]);
  });

  it("is the same to the last byte at another time", async () => {
    const hear = async () => {
      const client = await replay(`${RANGE}&speed=max`);
      await client.waitFor("REPLAY_ENDED");
      return client.messages;
    };
    const first = await hear();
    await fixture.clock.advance(1000);
    expect(JSON.stringify(await hear())).toBe(JSON.stringify(first));
    expect(first[0]).toEqual({ event: "CONNECTED", timestamp: "2026-02-01T07:00:00.000Z" });
  });

  it("keeps the pace: a thousand seconds pass in one", async () => {
    const from = "from=2026-02-01T08:00:00Z&to=2026-02-01T09:00:00Z";
    const client = await replay(`${from}&speed=1000`, [{ indexId: "a" }]);
    await fixture.clock.advance(1800);
    await fixture.settle(client);
    const half = client.messagesOf("INDEX_TICKER").length;
    expect([59, 60, 61, 62]).toContain(half);
    await fixture.clock.advance(1800);
    await client.waitFor("REPLAY_ENDED");
    expect(client.messagesOf("INDEX_TICKER")).toHaveLength(120);
  });

  it("sends exchange tickers too, and says which time was not observed", async () => {
    fixture.warehouse.connection.database.exec(
      "INSERT INTO exchanges (id, name, first_seen, absences) VALUES ('kraken-id', 'Kraken', '2026', 0)",
    );
    const ticker = { ...emptyRecord("exchange_ticks"), exchangeId: "kraken-id", marketId: "btc-usd-id" };
    const figures = { last: decimal("2.5"), bid: decimal("2.4"), ask: decimal("2.6"), volume: decimal("10") };
    const observed = ["08:00:00", "08:00:30", "08:02:00"].map(at);
    fixture.warehouse.transaction((transaction) => {
      const records = observed.map((ts) => ({ ...ticker, ...figures, ts, lastMoved: ts - 5 }));
      writeRecords(transaction, "exchange_ticks", records, "rest");
      for (const ts of observed)
        settleSnapshot(transaction, { stream: "exchange_ticks", exchangeId: null, at: ts, cadence: STEP });
    });
    const client = await fixture.connect("?from=2026-02-01T08:00:00Z&to=2026-02-01T08:02:30Z&speed=max");
    client.send({ event: "SUBSCRIBE_EXCHANGE_TICKER", exchangeId: "kraken-id" });
    await client.waitFor("REPLAY_ENDED");
    const sent = client.messages.filter(({ event }) => event === "EXCHANGE_TICKER" || event === "GAP");
    expect(sent.map(({ event, timestamp }) => [event, String(timestamp).slice(11, 19)])).toEqual([
      ["EXCHANGE_TICKER", "08:00:00"],
      ["EXCHANGE_TICKER", "08:00:30"],
      ["GAP", "08:01:00"],
      ["EXCHANGE_TICKER", "08:02:00"],
    ]);
    expect(sent[0]).toEqual({
      event: "EXCHANGE_TICKER",
      id: expect.any(String),
      exchangeId: "kraken-id",
      marketId: "btc-usd-id",
      last: "2.5",
      bid: "2.4",
      ask: "2.6",
      volume: "10",
      timestamp: "2026-02-01T08:00:00.000Z",
    });
    expect(sent[2]).toMatchObject({ stream: "exchange_ticks", state: "lost", reason: "not observed" });
  });

  it.each([
    "from=2026-02-01&speed=0",
    "from=yesterday-ish",
    "from=2026-02-02&to=2026-02-01",
    "speed=10",
    "from=-1d&wait=0",
  ])("refuses %s with 400", async (query) => {
    const client = new WebSocketClient(`${fixture.server?.wsUrl}?${query}`);
    expect((await client.waitForClose()).status).toBe(400);
  });
});
