import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { expect, it } from "vitest";
import { CommittedPages, commitWalkPage } from "../../../src/ingest/commit/walk-page.ts";
import { readPage, receivePage } from "../../../src/ingest/decode/read-page.ts";
import type { ResponseBody } from "../../../src/model/response-body.ts";
import { formatTimestamp, MICROS_PER_MS } from "../../../src/model/time.ts";
import { onlyPage } from "../../support/ingest/ingest-harness.ts";
import { at, SECOND } from "../../support/ingest/pages.ts";
import { seed } from "../../support/seed.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

const gap = { from: at("10:00:00"), to: at("12:00:00") };

const short = fc
  .tuple(fc.nat(999_999), fc.nat(9_999))
  .map(([whole, part]) => `${whole}.${String(part).padStart(4, "0")}`);
/** As strings: what doubles hold, and what they do not. */
const decimal = fc.oneof(
  { weight: 20, arbitrary: short },
  fc.constantFrom("1234567890.123456789", "0.00000000012", "123456789012345678", "0", "1e3", "2.5E-9"),
);
const oddDecimal = fc.constantFrom<unknown>(1.5, 0.1, "-3", null, "many", "", 12345678901234567890n);
const timestamp = fc.oneof(
  { weight: 20, arbitrary: fc.constant((ts: number) => formatTimestamp(ts)) },
  fc.constantFrom<(ts: number) => unknown>(
    (ts) => formatTimestamp(ts).replace("Z", "+00:00"),
    (ts) => formatTimestamp(ts).replace(/\.\d+Z/, "Z"),
  ),
);
const oddTimestamp = fc.constantFrom<(ts: number) => unknown>(
  (ts) => ts / MICROS_PER_MS,
  () => "yesterday",
  () => undefined,
  () => "2026-03-01T11:59:60Z",
  () => "1970-01-01T00:00:00Z",
);
const row = fc.record({
  /** Half-minutes below the end of the gap; the neighbours of a walk's page are one apart. */
  distance: fc.integer({ min: 1, max: 240 }),
  price: decimal,
  volume: decimal,
  tickVolume: decimal,
  timestamp,
});
/** What makes the decoder read a whole page record by record. */
const oddity = fc.record({
  row: fc.nat(),
  change: fc.oneof(
    oddDecimal.map((price) => ({ price })),
    oddDecimal.map((volume) => ({ volume })),
    oddTimestamp.map((form) => ({ form })),
    fc.constantFrom<object>({ flag: true }, { name: "Bitcoin" }, { id: null }, { volume: undefined }),
  ),
});
const page = fc.record({
  // Fifty rows are inserted at once.
  rows: fc.oneof(
    fc.array(row, { minLength: 1, maxLength: 20 }),
    fc.array(row, { minLength: 80, maxLength: 160, size: "max" }),
  ),
  order: fc.constantFrom("descending", "descending", "descending", "as drawn", "ascending"),
  areUnique: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, fc.constant(false)),
  hasTickVolume: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true)),
  oddities: fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    fc.array(oddity, { minLength: 1, maxLength: 3 }),
  ),
  isCompressed: fc.boolean(),
  isFromCache: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.constant(true)),
});

type Page = typeof page extends fc.Arbitrary<infer P> ? P : never;

function toJson({ rows, order, areUnique, hasTickVolume, oddities }: Page, indexId: string): string {
  const seen = new Set<number>();
  const used = rows.filter(({ distance }) => {
    if (areUnique && seen.has(distance)) return false;
    seen.add(distance);
    return true;
  });
  const direction = order === "ascending" ? -1 : 1;
  if (order !== "as drawn") used.sort((a, b) => (a.distance - b.distance) * direction);
  const content = used.map(({ distance, price, volume, tickVolume, timestamp: form }, i) => {
    const ts = gap.to - distance * 30 * SECOND;
    const record: Record<string, unknown> = { id: `r${i}`, indexId, indexType: "GWA", price, volume };
    if (hasTickVolume) record.tickVolume = tickVolume;
    record.timestamp = form(ts);
    for (const { row: at, change } of oddities) {
      if (at % used.length !== i) continue;
      if ("form" in change) record.timestamp = (change.form as (ts: number) => unknown)(ts);
      else Object.assign(record, change);
    }
    return record;
  });
  // JSON has no bigint: written as a number, it has more digits than a double.
  return JSON.stringify({ content }, (_, value) =>
    typeof value === "bigint" ? `#${value}#` : value,
  ).replaceAll(/"#(\d+)#"/g, "$1");
}

function openWarehouse() {
  const clock = { now: () => at("18:00:00") / MICROS_PER_MS };
  const warehouse = openTestWarehouse({ clock });
  warehouse.connection.database.pragma("synchronous = OFF");
  const committedPages = new CommittedPages();
  let scanned = 0;
  let decoded = 0;
  function commit(json: string, { isCompressed, isFromCache }: Page, indexId: string, requestedAt: number) {
    const series = { ...onlyPage.series, indexId };
    const bytes = new Uint8Array(isCompressed ? gzipSync(json) : Buffer.from(json));
    const body: ResponseBody = { bytes, ageMs: isFromCache ? 60_000 : 0, requestedAt, asOf: undefined };
    const { page, summary } = readPage({ stream: "index_ticks", series }, body);
    if (page.columns) scanned++;
    else decoded++;
    const walkPage = { ...onlyPage, series, position: { gap, provenFrom: gap.to } };
    const result = commitWalkPage(warehouse, committedPages, walkPage, receivePage(page));
    return { summary, result };
  }
  const tables = [
    "SELECT * FROM index_tick_rows WHERE series = ? ORDER BY ts",
    "SELECT * FROM past_tick_rows WHERE series = ? ORDER BY ts, until, revision",
    "SELECT * FROM settled_ranges WHERE series = ? ORDER BY from_ts",
  ];
  const readSeries = (indexId: string) => {
    const { database } = warehouse.connection;
    const key = database.prepare("SELECT series FROM series WHERE index_id = ?").pluck().get(indexId);
    return tables.map((sql) => database.prepare(sql).all(key));
  };
  const readShared = () =>
    ["rejects", "unknown_fields", "stream_states"].map((table) =>
      warehouse.connection.database.prepare(`SELECT * FROM ${table}`).all(),
    );
  return { commit, readSeries, readShared, counts: () => ({ scanned, decoded }) };
}

it("pages in columns are stored like pages of objects, whatever was stored before", () => {
  const columns = openWarehouse();
  const objects = openWarehouse();
  let run = 0;
  fc.assert(
    fc.property(fc.array(page, { minLength: 1, maxLength: 3 }), (drawn) => {
      const indexId = `index-${run++}`;
      for (const [i, one] of drawn.entries()) {
        const json = toJson(one, indexId);
        const inColumns = columns.commit(json, one, indexId, i);
        // The scanner accepts no leading space.
        expect(inColumns).toEqual(objects.commit(` ${json}`, one, indexId, i));
      }
      expect(columns.readSeries(indexId)).toEqual(objects.readSeries(indexId));
    }),
    { numRuns: 40, seed },
  );
  expect(columns.readShared()).toEqual(objects.readShared());
  expect(columns.counts().scanned).toBeGreaterThan(20);
  expect(columns.counts().decoded).toBeGreaterThan(10);
  expect(objects.counts().scanned).toBe(0);
});
