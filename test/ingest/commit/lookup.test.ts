import { expect, it } from "vitest";
import { commitLookup, commitService, type LookupList } from "../../../src/ingest/commit/lookup.ts";
import { type Page, readPage, receivePage } from "../../../src/ingest/decode/read-page.ts";
import { assetRecord as asset, jsonBody } from "../../support/ingest/pages.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { catchFailure, openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";

function openLookups() {
  const clock = new ManualClock();
  const warehouse = openTestWarehouse({ clock });
  const read = (list: Parameters<typeof readPage>[0], content: readonly unknown[], ageMs = 0) =>
    receivePage(readPage(list, { ...jsonBody({ content }), ageMs }).page) as Page<"assets">;
  return {
    anHour: () => clock.advance(3_600_000),
    query: (sql: string) => queryRows(warehouse, sql),
    /** Checks the service that has these pages of assets. */
    checkService(serviceUrl: string, contents: (readonly unknown[])[], mayAdopt = false) {
      const assets = contents.map((content) => read({ stream: "assets" }, content));
      return commitService(warehouse, assets, { serviceUrl, mayAdopt });
    },
    /** Commits a list of assets, the first page of which is from a cache. */
    commitCached(content: readonly unknown[]) {
      const ages = [60_000, 0];
      const pages = ages.map((ageMs) => read({ stream: "assets" }, content, ageMs));
      const serviceUrl = "https://service.test";
      return commitLookup(warehouse, pages, { stream: "assets", serviceUrl, request: "GET /assets" });
    },
    /** Commits a list of these pages. */
    commit(list: Omit<LookupList, "request">, ...contents: (readonly unknown[])[]) {
      const pages = contents.map((content) => read(list as LookupList, content));
      const origin = { request: "GET /list", serviceUrl: "https://service.test" };
      return commitLookup(warehouse, pages, { ...list, ...origin } as LookupList);
    },
  };
}

it("a lookup consists of all its pages, and an id counts once", () => {
  const { commit, query } = openLookups();
  const result = commit({ stream: "assets" }, [asset("a"), asset("b")], [asset("b", "INACTIVE"), asset("c")]);
  expect(result).toMatchObject({ listed: 3, rejected: 0, added: 3 });
  expect(query("SELECT id, status FROM assets ORDER BY id")).toEqual([
    { id: "a", status: "ACTIVE" },
    { id: "b", status: "INACTIVE" },
    { id: "c", status: "ACTIVE" },
  ]);
});

it("an unreadable record is stored in rejects with its request, and proves nothing about missing ids", async () => {
  const { commit, query, anHour } = openLookups();
  const many = Array.from({ length: 20 }, (_, i) => asset(`a${i}`));
  commit({ stream: "assets" }, many);
  const delisted: number[] = [];
  for (let run = 0; run < 9; run++) {
    const committed = commit({ stream: "assets" }, many.slice(1), [{ symbol: "no id" }]);
    expect(committed).toMatchObject({ listed: 19, rejected: 1, delisted: 0 });
    await anHour();
  }
  expect(query("SELECT DISTINCT stream, request FROM rejects")).toEqual([
    { stream: "assets", request: "GET /list" },
  ]);
  for (let run = 0; run < 9; run++) {
    delisted.push(commit({ stream: "assets" }, many.slice(1)).delisted);
    await anHour();
  }
  expect(delisted).toEqual([0, 0, 1, 0, 0, 0, 0, 0, 0]);
});

it("properties that this version does not know are counted, of every page", () => {
  const { commit, query } = openLookups();
  commit({ stream: "assets" }, [{ ...asset("a"), shiny: 1 }], [{ ...asset("b"), dull: 2 }]);
  expect(query('SELECT "where" AS stream, name, count FROM unknown_fields ORDER BY name')).toEqual([
    { stream: "assets", name: "dull", count: 1 },
    { stream: "assets", name: "shiny", count: 1 },
  ]);
});

it("a list of contracts is about one type on one exchange: it delists no others", async () => {
  const { commit, query, anHour } = openLookups();
  const contract = (id: string, exchangeId: string) => ({ id, exchangeId, marketId: "m", exchangeName: id });
  const futuresOf = (exchangeId: string) =>
    ({ stream: "derivative_contracts", derivativeType: "futures", exchangeId }) as const;
  commit(futuresOf("okx"), [contract("o1", "okx")]);
  const kraken = Array.from({ length: 20 }, (_, i) => contract(`k${i}`, "kraken"));
  commit(futuresOf("kraken"), kraken);
  for (let run = 0; run < 3; run++) {
    commit(futuresOf("kraken"), kraken.slice(1));
    await anHour();
  }
  expect(
    query("SELECT id, derivative_type, exchange_id FROM derivative_contracts WHERE delisted_at IS NOT NULL"),
  ).toEqual([{ id: "k0", derivative_type: "futures", exchange_id: "kraken" }]);
});

it("a service is that of the warehouse by its assets, on whichever page, wherever it is", () => {
  const { checkService, commit, query } = openLookups();
  const urls = () => query("SELECT service_url AS url FROM warehouse_state").map(({ url }) => url);
  expect(catchFailure(() => checkService("https://a.test", [[], []])).code).toBe("doubtful_list");
  expect(urls()).toEqual([null]);
  expect(checkService("https://a.test", [[asset("a")], [asset("b"), asset("c")]])).toBe("moved");
  expect(urls()).toEqual(["https://a.test"]);
  expect(checkService("https://b.test", [[asset("b"), asset("c")]])).toBe("moved");
  const other = [[asset("x"), asset("y")]];
  expect(catchFailure(() => checkService("https://c.test", other)).code).toBe("other_service");
  expect(urls()).toEqual(["https://b.test"]);
  expect(checkService("https://c.test", other, true)).toBe("adopted");
  const noted = "SELECT id FROM status_changes WHERE field = 'delisted_at'";
  expect(query(`SELECT id FROM assets WHERE delisted_at IS NOT NULL AND id NOT IN (${noted})`)).toEqual([]);
  // Its lists must fit too, but contracts come and go.
  const foreign = catchFailure(() => commit({ stream: "assets" }, [asset("p"), asset("q")]));
  expect(foreign.code).toBe("other_service");
  const contract = { id: "k", exchangeId: "kraken", marketId: "m", exchangeName: "k" };
  const list = { stream: "derivative_contracts", derivativeType: "futures", exchangeId: "kraken" };
  commit(list as never, [contract]);
  expect(query("SELECT DISTINCT stream FROM service_ids")).toEqual([{ stream: "assets" }]);
});

it("B16: a list from a cache adds new entries, and neither changes a status nor counts a missing entry", () => {
  const { commitCached, commit, query } = openLookups();
  commit({ stream: "assets" }, [asset("BTC", "INACTIVE"), asset("ETH")]);
  for (let run = 0; run < 9; run++) {
    const result = commitCached([asset("BTC"), asset("OLD")]);
    expect(result).toMatchObject({ added: run === 0 ? 1 : 0, changed: 0, delisted: 0 });
  }
  const assets = query("SELECT id || ' ' || status FROM assets WHERE delisted_at IS NULL ORDER BY id");
  expect(assets.flatMap(Object.values)).toEqual(["BTC INACTIVE", "ETH ACTIVE", "OLD ACTIVE"]);
  expect(query("SELECT * FROM status_changes")).toEqual([]);
  expect(
    commit(
      { stream: "assets" },
      ["BTC", "ETH", "OLD"].map((id) => asset(id)),
    ),
  ).toMatchObject({ changed: 1 });
});
