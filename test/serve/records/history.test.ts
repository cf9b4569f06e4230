import { request } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { serveWarehouse } from "../../support/serve/filled-server.ts";
import { TickServer } from "../../support/serve/tick-server.ts";
import { sendRequest } from "../../support/simulator/rest-client.ts";
import { fill, STEP } from "../../support/warehouse/filled-warehouse.ts";
import { bar, decimal, parseTs, tick } from "../../support/warehouse/records.ts";
import { writeRecords } from "../../support/warehouse/write-records.ts";

const fixture = new TickServer();
const { clock, warehouse } = fixture;
const at = (time: string) => parseTs(`2026-03-01T${time}Z`);

/** Ticks from 08:00 to 12:00; the ledger lacks 10:00 to 10:10 and the head, and has lost 09:00 to 09:05. */
const ranges = [
  [at("08:00:00"), at("09:00:00")],
  [at("09:05:00"), at("10:00:00")],
  [at("10:09:00"), at("12:00:00")],
] as const;
const rows = ranges.flatMap(([from, to]) =>
  Array.from({ length: (to - from) / STEP }, (_, i) => ({ ts: from + i * STEP, price: decimal("1.5") })),
);
const settled = [ranges[0], ranges[1], [at("10:10:00"), at("11:50:00")]] as const;
const lost = [[at("09:00:00"), at("09:05:00")]] as const;
warehouse.transaction((transaction) =>
  fill(transaction, { series: [{ from: at("08:00:00"), rows, settled, lost }] }),
);
const server = await fixture.start();

const get = (query: string) => sendRequest(`${server.baseUrl}/v3/${query}`);
const ticks = (query: string) => get(`index-ticker?indexType=GWA&indexId=btc-id&size=2000&${query}`);
const coverage = ({ headers }: { headers: Headers }) => headers.get("x-mds-coverage");
const span = (content: { timestamp: string }[]) =>
  [content[0], content.at(-1)].map((record) => record?.timestamp.slice(11, 19));

describe("a page of history", () => {
  it("J1: ends at an open range and names it; the next page begins in it", async () => {
    const first = await ticks("timestamp=2026-03-01T12:00:00Z");
    expect(span(first.body.content)).toEqual(["11:59:30", "10:10:00"]);
    expect(coverage(first)).toBe(
      "open from=2026-03-01T11:50:00.000000Z to=2026-03-01T12:00:00.000001Z, " +
        "open from=2026-03-01T10:00:00.000000Z to=2026-03-01T10:10:00.000000Z",
    );
    const second = await ticks(`startAfter=${first.body.nextId}`);
    expect(span(second.body.content)).toEqual(["10:09:30", "08:00:00"]);
    expect(second.body.nextId).toBeNull();
    expect(coverage(second)).toBe(
      "open from=2026-03-01T10:00:00.000000Z to=2026-03-01T10:10:00.000000Z, " +
        'lost from=2026-03-01T09:00:00.000000Z to=2026-03-01T09:05:00.000000Z reason="aged out", ' +
        'lost from=1970-01-01T00:00:00.000000Z to=2026-03-01T08:00:00.000000Z reason="not at the source"',
    );
  });

  it("has no coverage header where everything is covered", async () => {
    const page = await get(
      "index-ticker?indexType=GWA&indexId=btc-id&timestamp=2026-03-01T11:40:00Z&size=20",
    );
    expect(page.body.content).toHaveLength(20);
    expect(coverage(page)).toBeNull();
    expect(page.headers.get("x-mds-window")).toBe("2026-03-01T08:00:00.000000Z");
    expect(page.headers.get("server")).toBe("mds-sync/1.2.3");
  });

  it("with complete=true, answers 503 if anything of the page is open or lost", async () => {
    const { status, body } = await ticks("timestamp=2026-03-01T11:00:00Z&complete=true");
    expect([status, body.status]).toEqual([503, "SERVICE_UNAVAILABLE"]);
    expect((await ticks("timestamp=2026-03-01T09:30:00Z&complete=true")).status).toBe(503);
    expect((await ticks("timestamp=2026-03-01T08:30:00Z&complete=true")).status).toBe(200);
  });

  it("says that everything is open of an asset of which nothing was synced, and 404 of an unknown one", async () => {
    warehouse.connection.database.exec(
      "INSERT INTO assets (id, symbol, first_seen, absences) VALUES ('eth-id', 'ETH', '2026', 0)",
    );
    const page = await get("index-ticker?indexType=GWA&indexId=eth-id&timestamp=2026-03-01T12:00:00Z");
    expect(page.body).toEqual({ content: [], nextId: null });
    expect(coverage(page)).toBe("open from=1970-01-01T00:00:00.000000Z to=2026-03-01T12:00:00.000001Z");
    expect((await get("index-ticker?indexId=other&timestamp=2026-03-01T12:00:00Z")).status).toBe(404);
  });
});

describe("records", () => {
  it("have the exact digits and the unknown properties that were stored", async () => {
    warehouse.transaction((transaction) => {
      const digits = (text: string, real: number) => ({ real, exact: text });
      const exact = {
        indexId: "xrp-id",
        price: digits("0.12345678901234567891", 0.12345678901234568),
        volume: { real: 2.5e-7, exact: null },
        extra: '{"colour":"red","depth":{"a":[1.50]}}',
      };
      writeRecords(transaction, "index_ticks", [tick(at("11:00:00") + 1234, "1", exact)], "rest");
      const ofDay = bar(parseTs("2026-02-27T00:00:00Z"), "123456789012345678.5", { indexId: "xrp-id" });
      writeRecords(transaction, "ohlcv", [ofDay], "rest");
    });
    const { text } = await get("index-ticker?indexType=GWA&indexId=xrp-id");
    expect(text).toContain('"price":"0.12345678901234567891","volume":"0.00000025"');
    expect(text).toContain('"timestamp":"2026-03-01T11:00:00.001234Z","colour":"red","depth":{"a":[1.50]}}');
    const { body } = await get("ohlcv?indexType=GWA&indexId=xrp-id");
    expect(body.content[0]).toMatchObject({ id: "bar-1772150400000000", close: "123456789012345678.5" });
  });

  it("are found by the id of a bar that the service gave it", async () => {
    warehouse.transaction((transaction) => {
      const days = ["25", "26"].map((day) => parseTs(`2026-02-${day}T00:00:00Z`));
      const bars = days.map((ts) =>
        bar(ts, "2", { indexId: "ltc-id", recordId: ids[ts === days[0] ? 0 : 1] ?? "" }),
      );
      writeRecords(transaction, "ohlcv", bars, "rest");
    });
    const { body } = await get(`ohlcv?indexType=GWA&indexId=ltc-id&startAfter=${ids[1]}`);
    expect(body.content.map(({ id }: { id: string }) => id)).toEqual([ids[0]]);
    expect(await get("ohlcv?indexType=GWA&startAfter=none")).toMatchObject({ status: 404 });
  });

  it("are no cursor of another stream, of another warehouse, or of several indices by the service's id", async () => {
    const { body } = await ticks("timestamp=2026-03-01T11:00:00Z&size=1");
    const cursor = String(body.content[0].id);
    const others = cursor.replace(/^.{8}/, "000000ff");
    const statuses = async (...paths: readonly string[]) =>
      Promise.all(paths.map(async (path) => (await get(path)).status));
    expect(
      await statuses(
        `index-ticker?indexType=GWA&startAfter=${cursor}`,
        `index-ticker?indexType=GWA&startAfter=${others}`,
        `ohlcv?indexType=GWA&startAfter=${cursor}`,
        `ohlcv?indexType=GWA&startAfter=${ids[1]}`,
        `exchange-ticker?startAfter=${cursor}`,
      ),
    ).toEqual([200, 404, 404, 404, 404]);
  });
});

/** The specification calls ids opaque. */
const ids = ["11111111-1111-4111-8111-111111111111", "bar:26"];

describe("a server without clients", () => {
  it("J4: answers only requests to localhost and IP addresses", async () => {
    const status = await new Promise((resolve) =>
      request(`${server.baseUrl}/v3/asset`, { headers: { host: "evil.example" } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      }).end(),
    );
    expect(status).toBe(421);
  });

  it("J3: answers 503 while there is no warehouse, and serves it once it appears", async () => {
    const later = join(fixture.folder, "later.sqlite");
    const early = await serveWarehouse(later, clock);
    expect((await sendRequest(`${early.baseUrl}/v3/asset`)).status).toBe(503);
    openWriter(later, { clock }).close();
    await clock.advance(1000);
    expect((await sendRequest(`${early.baseUrl}/v3/asset`)).body).toEqual({ content: [] });
    await early.close();
  });
});
