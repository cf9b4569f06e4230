import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { IncompleteFailure, openWarehouse, type Warehouse } from "../../src/library/open-warehouse.ts";
import { formatTimestamp, type Micros } from "../../src/model/time.ts";
import { normalise } from "../../src/model/time-range.ts";
import { backUp } from "../../src/warehouse/backup.ts";
import { withReader } from "../../src/warehouse/reader.ts";
import { restoreWarehouse } from "../../src/warehouse/restore.ts";
import { type MovePosition, moveLiveRows } from "../../src/warehouse/rows/move-live-rows.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { emptyRecord } from "../support/empty-record.ts";
import { applyChange, HISTORY_FROM, HISTORY_TO, someHistory } from "../support/library/random-history.ts";
import { withWarehouse } from "../support/library/with-warehouse.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { seed } from "../support/seed.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { createEarlierWarehouse } from "../support/warehouse/earlier-warehouse.ts";
import { catchFailure, openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { decimal, exchangeTick, parseTs } from "../support/warehouse/records.ts";
import { writeContracts, writeLookup } from "../support/warehouse/write-lists.ts";
import { writeRecords } from "../support/warehouse/write-records.ts";

const from = HISTORY_FROM;
const to = HISTORY_TO;
const hour = 3_600_000_000;

interface State {
  readonly knownAt?: Micros | string;
}

const orders = { index_ticks: "ts", ohlcv: "day", bars_1h: "ts", bars_1d: "ts", coverage: "from_ts, stream" };

/** What a call gives, or why it fails. */
function outcome(ask: () => unknown): unknown {
  try {
    return ask();
  } catch (error) {
    if (error instanceof IncompleteFailure) return "incomplete";
    return error instanceof Error ? error.message : error;
  }
}

/** Everything that the readers say about a series. The reasons of open gaps depend on settings, which have no past. */
function askEverything(warehouse: Warehouse, name: string, state: State): Record<string, unknown> {
  const inRange = { from, to, ...state };
  const part = { from: from + 5 * hour + 1, to: from + 29 * hour, ...state };
  const gaps = () => {
    const found = warehouse.gaps({ stream: "index_ticks", series: name, ...inRange });
    const ranges = found.map(({ from_ts, to_ts }) => ({ from: from_ts, to: to_ts }));
    const lost = found.filter(({ reason }) => reason === "test reason");
    return { missing: normalise(ranges), lost };
  };
  const asked: Record<string, () => unknown> = {
    ticks: () => warehouse.ticks(name, state),
    "ticks of a part": () => warehouse.ticks(name, part),
    columns: () => warehouse.ticks(name, { as: "columns", columns: ["price", "volume"], ...inRange }),
    "1h": () => warehouse.bars(name, { every: "1h", ...state, to }),
    "2h of a part": () => warehouse.bars(name, { every: "2h", ...part }),
    "7m": () => warehouse.bars(name, { every: "7m", ...part }),
    "1d": () => warehouse.bars(name, { every: "1d", ...inRange }),
    "daily bars": () => warehouse.bars(name, { every: "1d", source: "ohlcv", ...inRange }),
    "as of": () => [0, 3, 20, 47, 90].map((at) => warehouse.asOf(from + at * hour + 5, name, state)),
    coverage: () => warehouse.coverage({ series: name, ...state }),
    gaps,
    "is whole": () =>
      [inRange, part, { ...part, stream: "ohlcv" } as const].map((range) => warehouse.isWhole(name, range)),
    complete: () => warehouse.bars(name, { every: "1h", requireComplete: true, ...part }),
    ...Object.fromEntries(
      Object.entries(orders).map(([relation, order]) => {
        const sql = `SELECT * FROM ${relation} WHERE name = :name ORDER BY ${order}`;
        return [`SQL: ${relation}`, () => warehouse.query(sql, { name }, state)];
      }),
    ),
  };
  return Object.fromEntries(Object.entries(asked).map(([title, ask]) => [title, outcome(ask)]));
}

describe(`an earlier state (seed ${seed})`, () => {
  it("is answered exactly as it was, by its moment and by its token", () => {
    const clock = new ManualClock();
    const writer = openTestWarehouse({ clock, hasAllViews: true });
    writer.connection.database.pragma("synchronous = OFF");
    const warehouse = openWarehouse(writer.path);
    let runs = 0;
    let states = 0;
    fc.assert(
      fc.property(someHistory, (history) => {
        const name = `series-${runs++}`;
        const seen: { at: Micros; token: string; answers: Record<string, unknown> }[] = [];
        for (const changes of history) {
          clock.jump(60_000);
          writer.transaction((transaction) => {
            for (const change of changes) applyChange(transaction, name, change);
          });
          clock.jump(1_000);
          const answers = askEverything(warehouse, name, {});
          seen.push({ at: clock.now() * 1000, token: warehouse.cite(), answers });
        }
        // Every hour has its newest bar: an earlier state must not take it.
        writer.transaction((transaction) => applyChange(transaction, name, { kind: "compute", limit: 1000 }));
        for (const { at, token, answers } of seen) {
          const knownAt = states++ % 2 ? token : at;
          expect(askEverything(warehouse, name, { knownAt })).toEqual(answers);
        }
      }),
      { numRuns: 8 },
    );
    expect(states).toBeGreaterThan(40);
    warehouse.close();
  });

  it("has its moment as the present", () => {
    const clock = new ManualClock();
    const writer = openTestWarehouse({ clock });
    writer.transaction((transaction) =>
      applyChange(transaction, "one", { kind: "page", from: 0, versions: Array(60).fill(0), offset: 0 }),
    );
    using warehouse = openWarehouse(writer.path);
    const knownAt = formatTimestamp(clock.now() * 1000 + 1);
    const [asOf] = warehouse.asOf("now", "one", { knownAt });
    expect(asOf?.age_seconds).toBe((clock.now() * 1000 + 1 - (from + 59 * 600e6)) / 1e6);
    const relative = { from: `now-${9 * 24 - 3}h`, knownAt };
    expect(warehouse.ticks("one", relative)).toHaveLength(0);
    expect(warehouse.ticks("one", { from: `now-${9 * 24 + 12 - 5}h`, knownAt })).toHaveLength(29);
  });
});

const page = (at: number, version = 0) =>
  ({ kind: "page", from: at, versions: Array(60).fill(version), offset: 0 }) as const;

/** A warehouse in a folder of its own, with one commit at 12:01. */
function openWithOneCommit() {
  const clock = new ManualClock();
  const writer = openTestWarehouse({ clock, hasAllViews: true });
  clock.jump(60_000);
  writer.transaction((transaction) => applyChange(transaction, "one", page(0)));
  return { clock, writer };
}

const prices = (warehouse: Warehouse, knownAt: string) =>
  warehouse.ticks("one", { knownAt }).map(({ price }) => price);

describe("the moments of commits", () => {
  it("are this machine's; of two with one moment, because its clock was set back, the later counts", () => {
    const { clock, writer } = openWithOneCommit();
    const cited = withWarehouse(writer.path, (warehouse) => warehouse.cite());
    clock.stepWallClock(-3_600_000);
    for (const version of [1, 3]) {
      clock.jump(60_000);
      writer.transaction((transaction) => applyChange(transaction, "one", page(0, version)));
    }
    clock.jump(3_600_000);
    writer.transaction((transaction) => applyChange(transaction, "one", page(0)));
    const moments = writer.connection.rows<{ at: Micros }>("SELECT at FROM commits ORDER BY seq");
    const texts = ["12:00:00", "12:01:00", "11:02:00", "11:03:00", "12:03:00"];
    expect(moments.map(({ at }) => formatTimestamp(at).slice(11, 19))).toEqual(texts);
    withWarehouse(writer.path, (warehouse) => {
      expect(prices(warehouse, "2026-03-01 11:02:30")[1]).toBe(5);
      for (const time of ["11:30", "12:00:30", "12:02"])
        expect(prices(warehouse, `2026-03-01 ${time}`)[1]).toBe(1.24e-9);
      for (const state of ["2026-03-01 12:03", cited]) expect(prices(warehouse, state)[1]).toBe(101);
      expect(catchFailure(() => prices(warehouse, "2026-03-01 11:01")).summary).toContain(
        "keeps its past since 2026-03-01T11:02:00.000000Z",
      );
    });
  });

  it("of an earlier version stay as they are: by the service's clock, with the tokens that cite them", () => {
    const clock = new ManualClock();
    const writer = openTestWarehouse({ clock, hasAllViews: true, serviceNow: () => clock.now() - 3_600_000 });
    clock.jump(60_000);
    writer.transaction((transaction) => applyChange(transaction, "one", page(0)));
    const cited = withWarehouse(writer.path, (warehouse) => warehouse.cite());
    writer.connection.database.exec("UPDATE commits SET clock_skew = NULL");
    clock.jump(60_000);
    writer.transaction((transaction) => applyChange(transaction, "one", page(0, 1)));
    withWarehouse(writer.path, (warehouse) => {
      expect(prices(warehouse, cited)[1]).toBe(101);
      const nowOf = (knownAt: string) => {
        const [asOf] = warehouse.asOf("now", "one", { knownAt });
        return formatTimestamp((asOf?.ts ?? 0) + (asOf?.age_seconds ?? 0) * 1e6).slice(11, 19);
      };
      expect(nowOf("2026-03-01 12:01")).toBe("12:01:00");
      expect(nowOf("2026-03-01 12:02")).toBe("11:02:00");
    });
  });
});

describe("a state that the warehouse cannot tell exactly is refused", () => {
  it.each([
    [
      "2026-03-01 11:59:59",
      "what was known at 2026-03-01T11:59:59.000000Z cannot be shown: this warehouse keeps its past since 2026-03-01T12:00:00.000000Z: give a later moment",
    ],
    ["2126-01-01", "2126-01-01T00:00:00.000000Z is in the future: give a moment that is over"],
    ["soon", "soon is not a time: "],
    ["@57-3f9c01", "@57-3f9c01 is not a whole token: "],
    [
      "2026-03-01T12:01:00.000000Z@7-0123456789a",
      "2026-03-01T12:01:00.000000Z@7-0123456789a is not a whole token: give it as `cite` printed it, TIME@COMMIT-DIGEST",
    ],
    [
      "2026-03-01T12:01:00.000000Z@7-0123456789ab",
      "2026-03-01T12:01:00.000000Z@7-0123456789ab cites a state that this warehouse never had: read the warehouse it is from",
    ],
    [
      "2026-03-01T12:01:00.000000Z@1-0123456789ab",
      "2026-03-01T12:01:00.000000Z@1-0123456789ab cites another warehouse: read that one, or a copy of it",
    ],
  ])("%s", (knownAt, message) => {
    using warehouse = openWarehouse(openWithOneCommit().writer.path);
    const failure = catchFailure(() => warehouse.ticks("one", { knownAt }));
    expect(failure.summary.slice(0, message.length)).toBe(message);
    expect(failure.exit).toBe(2);
    // And the next question is answered.
    expect(prices(warehouse, "2026-03-01 12:01")).toHaveLength(60);
    expect(prices(warehouse, "2026-03-01 12:00:59")).toEqual([]);
  });

  it("without a range, if it asks what was missing", () => {
    using warehouse = openWarehouse(openWithOneCommit().writer.path);
    const knownAt = "2026-03-01 12:02";
    for (const ask of [
      () => warehouse.gaps({ knownAt }),
      () => warehouse.gaps({ knownAt, from }),
      () => warehouse.ticks("one", { knownAt, from, requireComplete: true }),
    ])
      expect(catchFailure(ask)).toMatchObject({ code: "usage", exit: 2 });
  });
});

describe("SQL of an earlier state", () => {
  const relations = [
    ...["exchange_ticks", "market_caps", "derivative_ticks", "spread", "index_deviation", "perpetuals"],
    ...["exchange_ticks", "reconcile_market_caps"],
  ];
  const readAll = (warehouse: Warehouse, state: State) =>
    relations.map((relation) =>
      warehouse
        .query(`SELECT * FROM ${relation}`, {}, state)
        .map((row) => JSON.stringify(row))
        .sort(),
    );

  it("has the polls of then, whatever was corrected or moved since", () => {
    const clock = new ManualClock();
    const writer = openTestWarehouse({ clock, hasAllViews: true });
    using warehouse = openWarehouse(writer.path);
    const random = seededRandom(seed);
    const ts = () => from + Math.floor(random() * 20) * 30_000_000;
    const price = () => (1 + Math.floor(random() * 3)).toFixed(1);
    const seen: { at: Micros; rows: unknown }[] = [];
    let position: MovePosition | undefined;
    for (let commit = 0; commit < 30; commit++) {
      clock.jump(60_000);
      writer.transaction((transaction) => {
        const markets = ["a", "b", "c"].filter(() => random() < 0.7);
        const polled = ts();
        const ticks = markets.map((marketId) =>
          exchangeTick(polled, price(), { marketId, bid: decimal(price()) }),
        );
        writeRecords(transaction, "exchange_ticks", ticks, random() < 0.5 ? "rest" : "live");
        const cap = { ...emptyRecord("market_caps"), assetId: "btc", ts: ts(), price: decimal(price()) };
        writeRecords(transaction, "market_caps", [cap]);
        const contract = { exchangeId: "deribit", contractId: "BTC-PERP", derivativeType: "perpetuals" };
        const empty = emptyRecord("derivative_ticks");
        const derivative = { ...empty, ...contract, ts: ts(), markPrice: decimal(price()) };
        writeRecords(transaction, "derivative_ticks", [derivative]);
      });
      // Rows that are moved are the same rows.
      const last = Math.floor(commit / 3);
      if (commit % 3 === 2)
        position = writer.transaction((t) =>
          moveLiveRows(t, position ?? { first: 1, last, into: 0, stream: "exchange_ticks", key: 0 }, 4),
        );
      clock.jump(1_000);
      seen.push({ at: clock.now() * 1000, rows: readAll(warehouse, {}) });
    }
    for (const { at, rows } of seen) expect(readAll(warehouse, { knownAt: at })).toEqual(rows);
    expect(new Set(seen.map(({ rows }) => JSON.stringify(rows))).size).toBeGreaterThan(20);
  });

  it("has the lists of then, with what was changed, added and delisted since", () => {
    const clock = new ManualClock();
    const writer = openTestWarehouse({ clock, hasAllViews: true });
    using warehouse = openWarehouse(writer.path);
    const random = seededRandom(seed);
    const some = <T>(...values: readonly T[]) => values[Math.floor(random() * values.length)] as T;
    const lists = {
      assets: "id, symbol, name, status, url, quality, first_seen, delisted_at",
      markets: "id, base_asset_id, quote_asset_id, pair, first_seen, delisted_at",
      exchanges: "id, name, status, first_seen, delisted_at",
      exchange_markets: "exchange_id, market_id, quality, first_seen, delisted_at",
      derivative_contracts:
        "id, option_strike, option_strike_exact, listing, expiration, first_seen, delisted_at",
      status_changes: "*",
    };
    const readAll = (state: State) =>
      Object.entries(lists).map(([name, columns]) =>
        warehouse.query(`SELECT ${columns} FROM ${name} ORDER BY 1, 2`, {}, state),
      );
    const seen: { states: readonly State[]; rows: unknown }[] = [];
    for (let commit = 0; commit < 25; commit++) {
      clock.jump(7 * 3_600_000);
      const ids = ["a", "b", "c", "d"].slice(0, 1 + commit / 4).filter(() => random() < 0.8);
      // A tick may precede the description of its contract.
      const contractId = some("a", "b", "c", "d");
      const option = { derivativeType: "options", exchangeId: "x" };
      const tick = { ...emptyRecord("derivative_ticks"), ...option, contractId };
      const isComplete = true;
      if (random() < 0.5)
        writer.transaction((transaction) =>
          writeRecords(transaction, "derivative_ticks", [{ ...tick, ts: from + commit }]),
        );
      writer.transaction((transaction) => {
        const assets = ids.map((id) => ({
          ...emptyRecord("assets"),
          ...{ id, symbol: id.toUpperCase(), name: some(id, `${id}2`), url: some(null, "u") },
          quality: some(null, "odd"),
        }));
        writeLookup(transaction, "assets", assets, { isComplete });
        const market = { ...emptyRecord("markets"), id: "m", baseAssetId: "a", quoteAssetId: some("b", "c") };
        writeLookup(transaction, "markets", [market], { isComplete });
        const markets = ids.map((marketId) => ({ ...emptyRecord("exchanges"), marketId, extra: null }));
        const exchange = { ...emptyRecord("exchanges"), id: "x", name: some("X", "Y"), symbols: [] };
        writeLookup(transaction, "exchanges", [{ ...exchange, markets } as never], { isComplete });
        const contracts = ids.map((id) => ({
          ...emptyRecord("derivative_contracts"),
          ...{ id, derivativeType: "options", exchangeId: "x", marketId: "m" },
          ...{ optionStrike: decimal(some("0.1", "60000", "0.1234567890123456789")) },
          expiration: some(null, from, from + 1),
        }));
        writeContracts(transaction, contracts, { ...option, isComplete });
      });
      clock.jump(1_000);
      const states = [clock.now() * 1000, warehouse.cite()].map((knownAt) => ({ knownAt }));
      seen.push({ states, rows: readAll({}) });
    }
    for (const { states, rows } of seen) for (const state of states) expect(readAll(state)).toEqual(rows);
    expect(new Set(seen.map(({ rows }) => JSON.stringify(rows))).size).toBeGreaterThan(20);
  });

  it("refuses the newest state by another name, and counts times from then", async () => {
    const { writer } = openWithOneCommit();
    const known = ["query", "--known-at", "2026-03-01T12:01:30Z"];
    const ask = (...args: readonly string[]) =>
      runInProcess([...known, ...args, "--format", "csv"], { env: { MDS_WAREHOUSE: writer.path } });
    const refusal =
      "mds-sync: `main.` names the newest state: leave it out: an earlier state has relations of the same names\n";
    expect((await ask('SELECT * FROM "main".index_ticks')).stderr).toBe(refusal);
    const { stdout } = await ask("--param", "at=@now-30s", "SELECT :at AS at");
    expect(stdout.trim().split("\r\n")).toEqual(["at", String(parseTs("2026-03-01T12:01:00Z"))]);
  });

  it("says which relations have no earlier states", async () => {
    const { writer } = openWithOneCommit();
    const env = { MDS_WAREHOUSE: writer.path };
    const sql = "SELECT count(*) AS n FROM unknown_fields, (SELECT 1 FROM series) JOIN index_ticks";
    const known = ["--known-at", "2026-03-01T12:01:30Z", "--cite"];
    const { stderr } = await runInProcess(["query", ...known, sql], { env });
    expect(stderr).toMatch(/^mds-sync: cite: 2026-03-01T12:01:30\.000000Z@\d+-\w+\n/);
    expect(stderr.match(/note: (\w+) has no earlier states/g)).toEqual([
      "note: unknown_fields has no earlier states",
      "note: series has no earlier states",
    ]);
  });
});

describe("copies", () => {
  it("a backup reproduces what was cited; restored, it refuses what it has not seen", () => {
    const { clock, writer } = openWithOneCommit();
    const cited = withWarehouse(writer.path, (warehouse) => warehouse.cite());
    const copy = `${writer.path}.copy`;
    withReader(writer.path, (reader) => backUp(reader, copy));
    clock.jump(60_000);
    writer.transaction((transaction) => applyChange(transaction, "one", page(0, 3)));
    const later = withWarehouse(writer.path, (warehouse) => warehouse.cite());
    const restored = join(temporaryFolder(), "mds.sqlite");
    restoreWarehouse(copy, restored, parseTs("2026-03-01T13:00:00Z"));
    clock.jump(2 * 3_600_000);
    const other = openTestWarehouse({ path: restored, clock });
    other.transaction((transaction) => applyChange(transaction, "one", page(0, 1)));
    for (const path of [copy, restored, writer.path])
      withWarehouse(path, (warehouse) =>
        expect(prices(warehouse, cited)).toEqual(Array.from({ length: 60 }, (_, at) => 100 + (at % 7))),
      );
    withWarehouse(restored, (warehouse) => {
      const refusal = (knownAt: string) => catchFailure(() => prices(warehouse, knownAt)).summary;
      expect(refusal("2026-03-01 12:30")).toBe(
        "what was known at 2026-03-01T12:30:00.000000Z cannot be shown: a copy from 2026-03-01T12:01:00.000000Z was restored at 2026-03-01T13:00:00.000000Z: ask the file that `restore` has set aside",
      );
      expect(refusal(later)).toContain("cites another warehouse");
      expect(prices(warehouse, "2026-03-01 12:01")).toHaveLength(60);
      expect(prices(warehouse, "2026-03-01 13:00")[1]).toBe(101);
      expect(prices(warehouse, "2026-03-01 14:30")[1]).toBe(5);
    });
  });

  it("of 0.2.0 know their past since ticks were last moved out of them", () => {
    const path = createEarlierWarehouse(join(temporaryFolder(), "mds.sqlite"));
    const moment = (seq: number) =>
      new Date((connection.value<Micros>("SELECT at FROM commits WHERE seq = ?", [seq]) ?? 0) / 1000);
    const { connection } = openTestWarehouse({ path });
    const [first = 0] = connection
      .rows<{ seq: number }>("SELECT seq FROM commits WHERE seq > 0 ORDER BY seq")
      .map(({ seq }) => seq);
    withWarehouse(path, (warehouse) => {
      const ticks = (knownAt?: Date) => warehouse.ticks("eth-id", knownAt === undefined ? {} : { knownAt });
      expect(ticks(moment(first))).toEqual(ticks());
      expect(ticks()).not.toEqual([]);
      expect(catchFailure(() => ticks(new Date(moment(first).getTime() - 1))).summary).toContain(
        "keeps its past since 2026-11-18T",
      );
    });
  });
});
