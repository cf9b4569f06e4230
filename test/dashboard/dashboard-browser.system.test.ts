import type { Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, vi } from "vitest";
import { title } from "../../src/dashboard/page/shared/text-format.ts";
import { duration } from "../../src/dashboard/page/shared/time-format.ts";
import type { StatusReport } from "../../src/model/status/warehouse-status.ts";
import {
  blockRequests,
  expectAccessible,
  expectFits,
  findCutElements,
  itInBrowser,
  openPage,
  phone,
  takeScreenshot,
} from "../support/dashboard/chromium.ts";
import { recordSampleErrors, serveFilled } from "../support/dashboard/dashboard-harness.ts";
import { fillEveryState, hostileName } from "../support/dashboard/heatmap-content.ts";
import { fillQuotedPair } from "../support/dashboard/market-content.ts";
import { expectSoon } from "../support/dashboard/moving-figures.ts";
import { fill, nowTs } from "../support/warehouse/filled-warehouse.ts";

let served: Awaited<ReturnType<typeof serveFilled>>;
beforeAll(async () => {
  served = await serveFilled(fillEveryState, afterAll);
  recordSampleErrors(served.errors);
  served.rate.count();
});

async function openDashboard(options?: Parameters<typeof openPage>[1]) {
  const page = await openPage(new URL("/sync", served.address).href, options);
  await page.waitForSelector('[data-group="index_ticks:GWA"] canvas');
  await page.waitForSelector("#missing tbody tr");
  await page.waitForSelector('[data-stream="index_ticks"] .age');
  return page;
}

describe("the dashboard", () => {
  itInBrowser(
    "shows rows, ages, the heat map, gaps and errors, without a request to another host",
    async () => {
      const page = await openDashboard();
      const sentence = await page.textContent("#sentence");
      expect(sentence).toMatch(/^Following the live feed: \d+ ranges left to fetch/);
      expect(await page.textContent("#rows")).not.toBe("–");
      expect(await page.textContent('[data-stream="index_ticks"] .age')).toMatch(/^[\d.]+ (s|min)$/);
      expect(await page.textContent('[data-stream="derivative_ticks"] .wraps')).toContain("read:derivatives");
      expect(await page.locator('[data-group="index_ticks:GWA"] .map a').allTextContents()).toEqual([
        "all",
        ..."ETH XRP ADA DOT AVAX LINK ATOM XLM".split(" "),
      ]);
      const summary = page.locator('[data-group="index_ticks:GWA"] canvas >> nth=0');
      expect(await summary.getAttribute("aria-label")).toMatch(/^all: \d+ % covered, .*\d+ % open$/);
      expect(await page.locator("#missing tbody tr").count()).toBeGreaterThan(5);
      expect(await page.locator("#errors tbody tr").count()).toBe(2);
      expect(await page.textContent("#rate")).toMatch(/^[\d.]+$/);
      await expectAccessible(page, "desktop");
      await page.setViewportSize(phone);
      await expectFits(page, "phone", ":root");
      served.daemon.problem = "nothing has been committed for 10 minutes";
      onTestFinished(() => {
        served.daemon.problem = undefined;
      });
      await page.waitForSelector("#sync-title .dot[data-tone=ill]");
      expect(await page.textContent("#sentence")).toBe("Stuck: nothing has been committed for 10 minutes.");
    },
  );

  itInBrowser("shows more rows on request, hostile names as text, and what a filter finds", async () => {
    served.daemon.backfill = { percent: 42, rows_per_second: 81_000, seconds_left: 190 };
    onTestFinished(() => {
      served.daemon.backfill = undefined;
    });
    const page = await openDashboard({ dark: true });
    const names = () => page.locator('[data-group="index_ticks:GWA"] .map a').allTextContents();
    const all = await names();
    await page.click('[data-group="index_ticks:GWA"] button');
    await page.waitForSelector('[data-group="index_ticks:GWA"] canvas >> nth=14');
    // The last of those with gaps.
    expect((await names())[9]).toBe(hostileName);
    await page.hover('[data-group="index_ticks:GWA"] canvas >> nth=9');
    expect(await page.textContent("#tip")).toContain(hostileName);
    await takeScreenshot(page, "dark");
    expect(await page.locator("#coverage img, #missing img, #errors img, #tip img").count()).toBe(0);
    expect(await page.title()).toBe("Sync · mds-sync");
    const countSeries = (state: string) =>
      served.query(`SELECT DISTINCT stream, index_type, index_id, reason FROM gaps WHERE state = '${state}'`)
        .length;
    // Gaps grow with the time: the page and the warehouse agree at some moment.
    await expectSoon(
      () => page.textContent("#missing-note"),
      () => `series: ${countSeries("open")} open, ${countSeries("lost")} lost`,
    );
    await page.fill("#filter-name", "bt");
    await page.locator("#filter-note", { hasText: / found$/ }).waitFor();
    expect(await names()).toEqual(["BTC"]);
    await page.fill("#filter-name", "");
    await page.check("#only-problems");
    await page.locator('[data-group="index_ticks:GWA"] a >> text="all"').waitFor({ state: "detached" });
    expect((await names()).length).toBeLessThan(all.length);
    expect(new URL(page.url()).search).toBe("?problems=1");
    await page.fill("#filter-name", "no such");
    await page.locator("#filter-note", { hasText: /^No / }).waitFor();
    expect(await page.textContent("#filter-note")).toBe("No incomplete series has “no such” in its name.");
    expect(await page.textContent("#sync-note")).toContain("first fill 42 %, about 3.2 min left, 81K rows/s");
    // The first key, and all that was typed meanwhile.
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    const asked: string[] = [];
    const note = (url: string) => void (url.includes("/api/coverage") && asked.push(url));
    page.on("request", (request) => note(request.url()));
    await page.focus("#filter-name");
    await page.keyboard.type("abcdefghijklmnopqrstuvwxyz0123456789");
    await page.clock.runFor(300);
    await vi.waitUntil(() => asked.length > 1);
    expect([asked.length, asked.at(-1)]).toEqual([2, expect.stringContaining("xyz0123456789")]);
    await page.goto(new URL("/sync?problems=1", served.address).href);
    await page.waitForSelector('[data-group="index_ticks:GWA"] canvas');
    expect(await page.isChecked("#only-problems")).toBe(true);
    expect((await names()).length).toBeLessThan(all.length);
  });

  itInBrowser("leads with the market and one line of proof, and folds maps without a gap", async () => {
    const page = await openPage(served.address, phone);
    const figure = (sql: string) =>
      served.warehouse.connection.database.prepare<[], number>(sql).pluck().get() ?? 0;
    const { body } = await served.fetchPage("/api/status");
    const { streams } = JSON.parse(body) as StatusReport;
    const counts = streams.map(({ stream }) => figure(`SELECT count(*) FROM ${stream}`));
    const stored = counts.reduce((sum, rows) => sum + rows, 0);
    const most = (condition: string) =>
      duration(
        figure(`SELECT max(seconds) FROM (SELECT sum(to_ts - from_ts) / 1e6 AS seconds FROM gaps WHERE ${condition}
          GROUP BY stream, index_type, index_id)`),
      );
    const open = () => figure("SELECT count(*) FROM gaps WHERE state = 'open'");
    const losing = streams.filter((stream) => stream.lost > 0).map(({ stream }) => stream);
    const mostLost = (stream: string) => most(`state = 'lost' AND stream = '${stream}'`);
    const lost = () => losing.map((one) => `${mostLost(one)} of ${title(one).toLowerCase()}`).join(" and ");
    // Gaps grow with the time: the page and the warehouse agree at some moment.
    await expectSoon(
      () => page.textContent("#proof-text"),
      () =>
        `${stored} rows, ${open()} ranges still open, at most ${most("state = 'open'")} of a series, ${lost()} lost`,
    );
    expect(await page.getAttribute("#proof", "data-tone")).toBe("busy");
    await page.waitForSelector("#ranking tbody tr");
    await expectAccessible(page);
    await page.click("#proof");
    await page.waitForSelector('[data-group="index_ticks:GWA"] canvas');
    const groups = await page
      .locator(".group")
      .evaluateAll((list) =>
        list.map((group) => [group.getAttribute("data-group"), group.querySelectorAll("canvas").length]),
      );
    // Exchange ticks have no gap: one strip for all, and last.
    expect(groups.at(-1)).toEqual(["exchange_ticks:", 1]);
    await page.click('[data-group="exchange_ticks:"] button');
    await page.waitForSelector('[data-group="exchange_ticks:"] canvas >> nth=3');
    const first = page.locator('[data-group="index_ticks:GWA"] a[href]').first();
    expect(await first.getAttribute("href")).toBe("/bars/ETH");
    // What was observed holds for a period that is not over: it is not covered until then.
    const range = await page.textContent('[data-stream="market_caps"] .wide');
    // Midnight is written as its date alone.
    expect(Date.parse(`${range?.split(" → ")[1]} UTC`)).toBeLessThanOrEqual(Date.now());
  });

  itInBrowser("tells the proof of a market that has no market caps yet", async () => {
    const { address, query } = await serveFilled((transaction) =>
      fill(transaction, { series: [{ from: nowTs - 3_600e6, settled: [[nowTs - 3_600e6, nowTs - 600e6]] }] }),
    );
    const page = await openPage(address);
    await page.locator("#empty-text", { hasText: "No market caps are synced yet." }).waitFor();
    expect(await page.isVisible("#ranking")).toBe(false);
    const stored = query("SELECT 1 FROM index_ticks").length;
    await page.locator("#proof-text:visible", { hasText: `${stored} row` }).waitFor();
  });

  itInBrowser("says of which moment figures are that are older than the rest of their page", async () => {
    const page = await openPage("about:blank");
    let secondsAgo = 0;
    const makeOlder = async (route: Route) => {
      const answer = await (await route.fetch()).json();
      const time = new Date(Date.now() - secondsAgo * 1000).toISOString();
      told.set(new URL(route.request().url()).pathname, time.slice(11, 19));
      await route.fulfill({ json: { ...answer, generated_at: time } });
    };
    const told = new Map<string, string>();
    await page.route(/\/api\/(status|missing|coverage)\b/, makeOlder);
    const ages = ["status", "missing", "coverage"];
    const readAges = () => Promise.all(ages.map((name) => page.textContent(`#${name}-age`)));
    const showOlder = async (seconds: number) => {
      secondsAgo = seconds;
      await page.goto(new URL("/sync", served.address).href);
      for (const selector of ["#missing tbody tr", ".group canvas", '[data-stream="index_ticks"] .age'])
        await page.waitForSelector(selector);
    };
    await showOlder(0);
    await page.locator("#sync-note", { hasText: "Running for" }).waitFor();
    expect(await readAges()).toEqual(["", "", ""]);
    await showOlder(40);
    await expectSoon(readAges, () => ages.map((name) => ` · as of ${told.get(`/api/${name}`)} UTC`));
    await page.goto(served.address);
    await page.locator("#proof-text", { hasText: / lost · as of [\d:]{8} UTC$/ }).waitFor();
    expect(await page.textContent("#proof-text")).toContain(told.get("/api/status"));
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });

  itInBrowser("keeps the room of what it has not read yet, and tells times in the chosen zone", async () => {
    const page = await openPage("about:blank", { expected: /503/ });
    const places = () =>
      page.evaluate(
        `["map-title", "ranking-title"].map((id) => document.getElementById(id).getBoundingClientRect().top)`,
      );
    const blocked = await blockRequests(page, "/api/market");
    await page.goto(served.address);
    await page.locator("#proof-text", { hasText: " rows, " }).waitFor();
    const note = page.locator(".reading", { hasText: "Reading the market …" }).first();
    await note.waitFor();
    const delay = () => page.evaluate(`getComputedStyle(document.querySelector(".reading")).transitionDelay`);
    expect(await delay()).toBe("0.3s");
    await page.emulateMedia({ reducedMotion: "reduce" });
    expect(await delay()).toBe("0s");
    const before = await places();
    await takeScreenshot(page, "market-reading");
    await blocked.failWith("the warehouse cannot be read");
    await page.locator(".reading", { hasText: "Could not read" }).first().waitFor();
    expect(await places()).toEqual(before);
    await takeScreenshot(page, "market-failing");
    await blocked.letThrough();
    await page.reload();
    await page.waitForSelector("#ranking tbody tr");
    expect(await places()).toEqual(before);

    const context = await page.context().browser()?.newContext({ timezoneId: "Asia/Tokyo" });
    onTestFinished(() => context?.close());
    const tokyo = await context?.newPage();
    const marketNote = async () => (await tokyo?.textContent("#market-note")) ?? "";
    await tokyo?.goto(served.address);
    await tokyo?.locator("#market-note", { hasText: "UTC" }).waitFor();
    const inUtc = /as of (.+) UTC$/.exec(await marketNote())?.[1] ?? "";
    await tokyo?.click("#zone");
    await tokyo?.locator("#market-note", { hasText: "UTC+9" }).waitFor();
    const inTokyo = /as of (.+) UTC\+9$/.exec(await marketNote())?.[1] ?? "";
    expect(Date.parse(`${inTokyo}Z`) - Date.parse(`${inUtc}Z`)).toBe(9 * 3_600_000);
  });
});

describe("the quotes of a pair", () => {
  itInBrowser(
    "are sorted, found by the exchange, and drawn on a scale that none of them can set",
    async () => {
      const { address, query } = await serveFilled(fillQuotedPair);
      const page = await openPage(new URL("exchanges/BTC-USD", address).href);
      await page.waitForSelector("#quotes tbody tr");
      const shown = () => page.locator("#quotes tbody b").allTextContents();
      // What does not move is last in every order.
      const stored = (order: string) =>
        query<{ exchange: string }>(
          `SELECT exchange FROM latest_index_deviation JOIN latest_exchange_ticks USING (exchange, pair)
          ORDER BY exchange = 'Dead', ${order}`,
        ).map(({ exchange }) => exchange);
      const head = (label: string) => page.locator("#quotes thead th", { hasText: label });
      await head("vs index").locator("button").click();
      expect(await shown()).toEqual(stored("deviation_bps DESC"));
      expect(await head("vs index").getAttribute("aria-sort")).toBe("descending");
      expect(await head("Volume").getAttribute("aria-sort")).toBeNull();
      await head("Ask").locator("button").click();
      expect(await shown()).toEqual(stored("ask"));
      await head("Exchange").locator("button").click();
      await head("Exchange").locator("button").click();
      expect(await shown()).toEqual(stored("exchange DESC"));
      expect(await page.evaluate("document.activeElement.textContent")).toBe("Exchange ↓");
      await page.fill("#search", "BITCOIN");
      expect(await shown()).toEqual(["Far Bitcoin Exchange"]);
      expect(new URL(page.url()).search).toBe("?q=BITCOIN&sort=-exchange");
      await page.reload();
      await page.waitForSelector("#quotes tbody tr");
      expect(await shown()).toEqual(["Far Bitcoin Exchange"]);
      expect(await head("Exchange").getAttribute("aria-sort")).toBe("descending");
      await head("Volume").locator("button").click();
      expect(new URL(page.url()).search).toBe("?q=BITCOIN");
      await page.fill("#search", "nobody");
      await page.locator("#no-match").waitFor();
      await page.fill("#search", "");
      await page.waitForSelector("#spread-plot canvas");
      const spreads = query<{ bps: number }>(
        "SELECT DISTINCT ts, (best_ask / best_bid - 1) * 10000 AS bps FROM spread WHERE pair = 'BTC/USD' ORDER BY ts",
      );
      expect(spreads).toHaveLength(144);
      expect(spreads.every(({ bps }) => bps < 0)).toBe(true);
      expect(await page.getAttribute("#spread-plot", "data-points")).toBe("144");
      const box = await page.locator("#spread-plot .u-over").boundingBox();
      const { x = 0, y = 0, width = 0, height = 0 } = box ?? {};
      for (const at of [0, 71, 143]) {
        await page.mouse.move(x + (width - 1) * (at / 143), y + height / 2);
        const shown = page.locator("#spread-plot .u-legend .u-value").nth(1);
        await shown.filter({ hasText: `−${Math.abs(spreads[at]?.bps ?? 0).toFixed(2)} bp` }).waitFor();
      }
      // Who quotes a price that moves, and who does not.
      const [quoting] = query<{ live: number; still: number }>(
        `SELECT sum(quality IS NULL) AS live, sum(quality = 'not moved for an hour') AS still FROM latest_spread WHERE pair = 'BTC/USD'`,
      );
      expect(quoting).toEqual({ live: 4, still: 1 });
      expect(await page.textContent("#quotes-note")).toMatch(/^4 live exchanges, 1 without a move · /);
      // From the middle to the right or left; what is beyond 20 bp ends in an arrow, what does not move has no bar.
      const bars = await page.locator("#quotes tbody tr").evaluateAll((rows) =>
        rows.map((row) => {
          const bar = row.querySelector(".bar");
          const [width, left] = ["width", "x"].map((name) => {
            const value = bar?.querySelector("rect")?.getAttribute(name);
            return value && String(Number(Number(value).toFixed(1)));
          });
          return [row.getAttribute("data-exchange"), bar && bar.querySelector("path") !== null, width, left];
        }),
      );
      const deviations = query<{ exchange: string; bps: number }>(
        "SELECT exchange, deviation_bps AS bps FROM latest_index_deviation WHERE exchange <> 'Dead'",
      );
      const expected = deviations.map(({ exchange, bps }) => {
        const part = (Math.min(20, Math.abs(bps)) / 20) * 50;
        const sides = [part, bps < 0 ? 50 - part : 50].map((value) => String(Number(value.toFixed(1))));
        return [exchange, Math.abs(bps) > 20, ...sides];
      });
      expect(bars.slice(0, -1).sort()).toEqual(expected.sort());
      expect(bars.at(-1)).toEqual(["Dead", null, undefined, undefined]);
      // What rounds to nothing has neither a sign nor a colour.
      const same = page.locator('[data-exchange="Same"] .off');
      expect([await same.textContent(), await same.getAttribute("class")]).toEqual(["0.0 bp", "number off"]);
      await expectAccessible(page, "exchanges");
      await page.setViewportSize(phone);
      await takeScreenshot(page, "exchanges-day-phone");
      // The plot is drawn again with the next frames.
      await expectSoon(
        () => findCutElements(page),
        () => [],
      );
      const quotes = page.locator(".scroll", { has: page.locator("#quotes") });
      expect(await quotes.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
      // Where the other table has no room, who sells scrolls away, and who buys stays.
      const edges = page.locator(".scroll", { has: page.locator("#edges") });
      await edges.evaluate((box) => {
        box.style.width = "200px";
      });
      const places = () =>
        edges
          .locator("tr:last-child > *")
          .evaluateAll((list) => list.map((one) => one.getBoundingClientRect().x));
      const [first = 0, ...others] = (await places()).slice(-5);
      const scrolled = await edges.evaluate((box) => {
        box.scrollLeft = box.scrollWidth;
        return box.scrollLeft;
      });
      expect(scrolled).toBeGreaterThan(20);
      const [kept = 0, ...moved] = (await places()).slice(-5);
      expect(Math.abs(kept - first)).toBeLessThanOrEqual(1);
      expect(moved).toEqual(others.map((x) => x - scrolled));
    },
  );
});
