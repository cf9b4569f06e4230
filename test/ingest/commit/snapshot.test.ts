import { expect, it } from "vitest";
import {
  commitForbiddenSnapshot,
  commitSnapshot,
  commitSnapshotCoverage,
  type SnapshotList,
} from "../../../src/ingest/commit/snapshot.ts";
import { type Page, readPage, receivePage } from "../../../src/ingest/decode/read-page.ts";
import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import type { Snapshot, SnapshotPart } from "../../../src/rule/snapshot.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { at, jsonBody } from "../../support/ingest/pages.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

function createValidator() {
  let now = at("12:10:07");
  const clock = { now: () => now / 1000 };
  const warehouse = openTestWarehouse({ clock, hasAllViews: true });
  const commitFor = (exchange: Pick<Snapshot, "stream" | "exchangeId">, parts: SnapshotPart[]) =>
    warehouse.transaction((t) =>
      commitSnapshotCoverage(t, { ...exchange, cadence: 60 * MICROS_PER_SECOND, parts }),
    );
  return {
    warehouse,
    commit: (...parts: SnapshotPart[]) =>
      commitFor({ stream: "derivative_ticks", exchangeId: "deribit" }, parts),
    commitFor,
    wait: (seconds: number) => {
      now += seconds * MICROS_PER_SECOND;
    },
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

it("a snapshot with less than half the records counts only when it comes again a while later", () => {
  const { commit, covered, wait } = createValidator();
  expect(commit(part(100, "12:00:00"))).toBeUndefined();
  expect(commit(part(50, "12:01:00"))).toBeUndefined();
  expect(commit(part(24, "12:02:00"))).toBe("shrunken");
  expect(commit(part(60, "12:03:00"))).toBeUndefined();
  expect(commit(part(24, "12:04:00"))).toBe("shrunken");
  // Polls in quick succession may meet the same fault.
  wait(19);
  expect(commit(part(24, "12:04:00"))).toBe("shrunken");
  wait(1);
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
  const { commit, covered, wait } = createValidator();
  commit(part(5, "12:09:30"));
  commit(part(5, "12:10:01"));
  expect(commit(part(0, ""))).toBe("empty");
  wait(20);
  expect(commit(part(0, ""))).toBeUndefined();
  expect(covered()).toEqual([["12:09", "12:11", "rows"]]);
});

it("a part that is mostly unreadable, or without a plausible timestamp, does not count", () => {
  const { commit, covered } = createValidator();
  const good = part(5, "12:00:00");
  expect(commit({ ...good, rejected: 6 })).toBe("unreadable");
  expect(commit({ ...good, timestamps: [], storedTimestamps: [] })).toBe("unreadable");
  expect(commit(good, { ...part(5, "12:00:00", "options"), rejected: 6 })).toBe("unreadable");
  expect(covered()).toEqual([]);
  expect(commit({ ...good, rejected: 5 })).toBeUndefined();
  expect(commit({ ...good, rejected: 5 })).toBeUndefined();
  expect(commit({ ...part(0, ""), rejected: 1 })).toBe("unreadable");
});

it("of all exchanges together an empty snapshot never counts; of one it counts if that had no rows", () => {
  const { commitFor, covered } = createValidator();
  const everything = { stream: "exchange_ticks", exchangeId: null } as const;
  for (let run = 0; run < 3; run++) expect(commitFor(everything, [part(0, "", "")])).toBe("empty");
  const kraken = { stream: "exchange_ticks", exchangeId: "kraken" } as const;
  expect(commitFor(kraken, [part(0, "", "")])).toBeUndefined();
  expect(covered()).toEqual([["12:10", "12:11", "empty"]]);
});

it("a doubt about a part passes with the next good snapshot of it, and concerns no other part", () => {
  const { commit, commitFor } = createValidator();
  const deribit = { stream: "derivative_ticks", exchangeId: "deribit" } as const;
  commit(part(100, "12:00:00"), part(100, "12:00:00", "options"));
  expect(commit(part(10, "12:01:00"), part(100, "12:01:00", "options"))).toBe("shrunken");
  expect(commit(part(100, "12:02:00"), part(10, "12:02:00", "options"))).toBe("shrunken");
  expect(commit(part(100, "12:02:00"), part(100, "12:02:00", "options"))).toBeUndefined();
  expect(commit(part(0, ""))).toBe("empty");
  expect(commit(part(100, "12:03:00"))).toBeUndefined();
  expect(commit(part(0, ""))).toBe("empty");
  // Another exchange or stream has its own counts.
  expect(commitFor({ ...deribit, exchangeId: "okx" }, [part(1, "12:03:00")])).toBeUndefined();
  expect(commitFor({ ...deribit, stream: "exchange_ticks" }, [part(1, "12:03:00")])).toBeUndefined();
});

it("a snapshot has rows only if one was stored in its period", () => {
  const { commit, covered } = createValidator();
  const stored = (...times: string[]) => ({ ...part(5, "12:00:00"), storedTimestamps: times.map(at) });
  commit({ ...stored(), timestamps: [at("12:00:30")] });
  commit({ ...stored("12:00:59.999", "12:02:00"), timestamps: [at("12:01:00")] });
  commit({ ...stored("12:00:00", "12:02:00"), timestamps: [at("12:02:59")] });
  expect(covered()).toEqual([
    ["12:00", "12:02", "empty"],
    ["12:02", "12:03", "rows"],
  ]);
});

it("pages that are at most two periods apart are of one snapshot, dated by the oldest", () => {
  const { commit, covered } = createValidator();
  commit(part(5, "12:00:00"), part(5, "12:02:00", "options"));
  expect(covered()).toEqual([["12:00", "12:01", "rows"]]);
  commit(part(5, "12:03:00"), part(5, "12:05:00.001", "options"));
  expect(covered()).toEqual([
    ["12:00", "12:01", "rows"],
    ["12:05", "12:06", "rows"],
  ]);
});

it("a snapshot that the service denies is lost for the present period", () => {
  const { warehouse, covered } = createValidator();
  const deribit = { stream: "derivative_ticks", exchangeId: "deribit" } as const;
  warehouse.transaction((t) => commitForbiddenSnapshot(t, { ...deribit, cadence: 60 * MICROS_PER_SECOND }));
  expect(covered()).toEqual([["12:10", "12:11", "lost"]]);
});

function commitCaps(warehouse: WarehouseWriter, time: string, polledAt: string): void {
  const polled = { askedAt: at(polledAt), answeredAt: at(polledAt), parts: [part(5, time)] };
  const cadence = 60 * MICROS_PER_SECOND;
  warehouse.transaction((t) =>
    commitSnapshotCoverage(t, { stream: "market_caps", exchangeId: null, cadence, ...polled }),
  );
}

it("a snapshot that polls return again covers until the last of them", () => {
  const { warehouse, covered } = createValidator();
  for (const time of ["12:00:01", "12:03:01"]) commitCaps(warehouse, "12:00:00", time);
  expect(covered()).toEqual([["12:00", "12:04", "rows"]]);
});

it("a snapshot whose commit is repeated covers as much as without the failure", () => {
  const { warehouse, covered } = createValidator();
  const commit = (time: string) => commitCaps(warehouse, time, time);
  const { database } = warehouse.connection;
  commit("12:00:00");
  database.exec(
    "CREATE TRIGGER refuse BEFORE INSERT ON settled_ranges BEGIN SELECT RAISE(ABORT, 'refused'); END",
  );
  expect(() => commit("12:05:00")).toThrow("refused");
  database.exec("DROP TRIGGER refuse");
  commit("12:05:00");
  expect(covered()).toEqual([["12:00", "12:06", "rows"]]);
});

function createPages() {
  const { warehouse } = createValidator();
  return {
    query: (sql: string) => warehouse.connection.database.prepare(sql).all(),
    commit: (stream: SnapshotList["stream"], content: object[], more: Partial<SnapshotList> = {}) => {
      const { page } = readPage({ stream, derivativeType: "futures" }, jsonBody({ content }));
      const list = { stream, request: "GET /list", ...more };
      return commitSnapshot(warehouse, receivePage(page) as Page<typeof stream>, list);
    },
  };
}
const ticker = (marketId: string, time: string) => ({
  ...{ exchangeId: "kraken", marketId, last: "1", bid: "1", ask: "2", volume: "3" },
  timestamp: `2026-03-01T${time}Z`,
});

it("a page stores the tickers of selected markets and dates all of them", () => {
  const { commit, query } = createPages();
  const content = [ticker("btc", "12:00:01"), ticker("eth", "12:00:03"), ticker("eth", "12:00:02")];
  expect(commit("exchange_ticks", content, { markets: new Set(["btc"]) })).toMatchObject({
    written: { inserted: 1 },
    listed: 3,
    rejected: 0,
    newest: at("12:00:03"),
    newestStored: at("12:00:01"),
  });
  expect(query("SELECT market_id, source FROM exchange_ticks")).toEqual([
    { market_id: "btc", source: "rest" },
  ]);
  expect(commit("exchange_ticks", content)).toMatchObject({ written: { inserted: 2 } });
});

it("a page is not dated by a timestamp from the future, nor by none", () => {
  const { commit } = createPages();
  // The clock stands at 12:10:07; ten seconds of difference are allowed.
  const content = [ticker("a", "12:10:17.000001"), ticker("b", "12:10:17"), ticker("c", "12:00:00")];
  const newest = at("12:10:17");
  expect(commit("exchange_ticks", content)).toMatchObject({ newest, newestStored: newest });
  const nothing = { listed: 0, newest: undefined, newestStored: undefined };
  expect(commit("exchange_ticks", [])).toMatchObject(nothing);
});

it("an unreadable ticker and an unknown property are kept with their request", () => {
  const { commit, query } = createPages();
  const { marketId, ...broken } = ticker("x", "12:00:00");
  const result = commit("exchange_ticks", [{ ...ticker("btc", "12:00:00"), shiny: 1 }, broken]);
  expect(result).toMatchObject({ listed: 1, rejected: 1 });
  expect(query("SELECT stream, request FROM rejects")).toEqual([
    { stream: "exchange_ticks", request: "GET /list" },
  ]);
  expect(query("SELECT name FROM unknown_fields")).toEqual([{ name: "shiny" }]);
});

it("each snapshot stream has its own table; the selection of markets is for exchange tickers only", () => {
  const { commit, query } = createPages();
  const timestamp = "2026-03-01T12:00:00Z";
  const markets = new Set(["none"]);
  const cap = { assetId: "btc", marketCapRank: 1, price: "1", marketCap: "2", timestamp };
  commit("market_caps", [cap], { markets });
  commit("derivative_ticks", [{ contractId: "c1", marketId: "m", price: "5", timestamp }], { markets });
  expect(query("SELECT asset_id, price FROM market_caps")).toEqual([{ asset_id: "btc", price: 1 }]);
  expect(query("SELECT contract_id, price FROM derivative_ticks")).toEqual([{ contract_id: "c1", price: 5 }]);
});
