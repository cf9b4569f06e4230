import { buffer } from "node:stream/consumers";
import { zstdDecompressSync } from "node:zlib";
import { parquetReadObjects } from "hyparquet";
import type { Page } from "playwright-core";
import { describe, expect, vi } from "vitest";
import {
  expectAccessible,
  expectFits,
  itInBrowser,
  openPage,
  phone,
  takeScreenshot,
} from "../support/dashboard/chromium.ts";
import { servePages } from "../support/dashboard/pages-harness.ts";
import { timeLimit } from "../support/time-limit.ts";

const pages = servePages();

const linkTo = (sql: string, rest: Record<string, string> = {}) =>
  new URL(`/explore#${new URLSearchParams({ sql, ...rest })}`, pages.address()).href;

const badRequest = /400 \(Bad Request\)/;
const isDone = (page: Page) => page.locator("#summary", { hasText: / in [\d,]+ ms/ }).waitFor();

function shownRows(page: Page): Promise<string[][]> {
  return page
    .locator("#grid [aria-rowindex]")
    .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent ?? "")));
}

/** Types a statement over the one in the editor, and runs it. */
async function runTyped(page: Page, sql: string): Promise<void> {
  await page.locator("#editor .cm-content").click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(sql);
  await page.keyboard.press("Control+Enter");
}

const compressors = { ZSTD: (input: Uint8Array) => zstdDecompressSync(input) };
const bars = "SELECT day, close, volume FROM ohlcv WHERE index_type = 'GWA' AND name = 'BTC' ORDER BY day";

/** Runs for this long, however busy the machine is. Each row says when it was read; `last` is of the last one. */
const slowly = (seconds: number, last: string) => `WITH RECURSIVE
  begun(t) AS MATERIALIZED (SELECT unixepoch('now', 'subsec')),
  c(n, at) AS (SELECT 1, t FROM begun
    UNION ALL SELECT n + 1, unixepoch('now', 'subsec', (n - n) || ' seconds') FROM c, begun WHERE at < t + ${seconds})
  SELECT n, at AS read_at,
    (WITH RECURSIVE d(m) AS (SELECT n UNION ALL SELECT m + 1 FROM d WHERE m < n + 20000) SELECT count(*) FROM d) AS work,
    CASE WHEN at >= t + ${seconds} THEN ${last} END AS last FROM c, begun`;

/** Follows a link of another page of the daemon. */
const openLink = (href: string, options?: Parameters<typeof openPage>[1]) =>
  openPage(href, { ...options, referer: new URL("/sync", pages.address()).href });

async function follow(page: Page, href: string): Promise<void> {
  await page.goto("about:blank");
  await page.goto(href, { referer: pages.address() });
}

describe("/explore", () => {
  itInBrowser("runs what the person ran or a page of the daemon links to, and no other link", async () => {
    const foreign = linkTo("SELECT 7 AS foreign_link");
    const page = await openPage(foreign, { referer: "http://elsewhere.example/" });
    let asked = 0;
    page.on("request", (request) => {
      if (request.url().endsWith("/api/query")) asked++;
    });
    const open = async (href: string) => {
      await page.goto("about:blank");
      await page.goto(href);
      await page.locator("[data-relation=ohlcv]").waitFor();
    };
    await page.locator("#summary", { hasText: /^This statement came with a link/ }).waitFor();
    await open(foreign);
    expect(await page.textContent("#editor .cm-content")).toBe("SELECT 7 AS foreign_link");
    // A page that holds this window can change the hash.
    await page.evaluate("location.hash = 'sql=SELECT+8+AS+other'");
    await page.locator("#editor .cm-content", { hasText: "SELECT 8 AS other" }).waitFor();
    const titles = await page.locator("#statements [aria-pressed]").allTextContents();
    expect(titles).toEqual(["SELECT 7 AS foreign_", "SELECT 8 AS other"]);
    expect(asked).toBe(0);
    await page.click("#run");
    await isDone(page);
    // It was run now.
    await open(linkTo("SELECT 8 AS other"));
    await isDone(page);
    expect(asked).toBe(2);
  });

  itInBrowser("opens a link beside nine statements without losing one that was not run", async () => {
    const page = await openPage(new URL("/sync", pages.address()).href);
    const titles = () => page.locator("#statements [aria-pressed]").allTextContents();
    const drafts = ["a", "b", "c", "d", "e", "f", "g", "h"].map((name) => `SELECT 1 FROM ${name}`);
    await page.evaluate(`localStorage.setItem("explore-tabs", ${JSON.stringify(JSON.stringify(drafts))})`);
    await follow(page, linkTo("SELECT 1 FROM assets"));
    await isDone(page);
    expect(await titles()).toEqual([..."abcdefgh", "assets"]);
    await follow(page, linkTo("SELECT 1 FROM exchanges"));
    await isDone(page);
    expect(await titles()).toEqual([..."abcdefgh", "exchanges"]);
  });

  itInBrowser("runs SQL from the keyboard, and shows ten thousand rows a screen at a time", async () => {
    const page = await openLink(linkTo("SELECT 1 AS one"));
    await isDone(page);
    await runTyped(page, `${bars} LIMIT 9`);
    await page.locator("#summary", { hasText: /^9 rows in / }).waitFor();
    const rows = pages.query<Record<string, unknown>>(`${bars} LIMIT 9`);
    expect(await shownRows(page)).toEqual(rows.map((row) => Object.values(row).map(String)));
    await page.click("#grid [role=columnheader] button >> nth=1");
    const closes = (await shownRows(page)).map(([, close]) => Number(close));
    expect(closes).toEqual(closes.toSorted((a, b) => a - b));
    expect(new URLSearchParams(new URL(page.url()).hash.slice(1)).get("sql")).toBe(`${bars} LIMIT 9`);

    await runTyped(
      page,
      "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 10500) SELECT n, n * 2 AS m FROM c",
    );
    await page.locator("#summary", { hasText: /^the first 10,000 rows/ }).waitFor();
    // A grid that never holds more than a screen of rows has the same work at each step, however long the result is.
    const mostRows = await page.evaluate(`(() => {
      const grid = document.getElementById("grid");
      let most = 0;
      for (let i = 0; i <= 40; i++) {
        grid.scrollTop = (i * 10_000 * 28) / 40;
        grid.dispatchEvent(new Event("scroll"));
        most = Math.max(most, grid.querySelectorAll("[aria-rowindex]").length);
      }
      return most;
    })()`);
    expect(mostRows).toBeLessThan(100);
    expect((await shownRows(page)).at(-1)).toEqual(["10000", "20000"]);

    // The editor completes with the columns of the relation in the statement.
    await page.locator("[data-relation=ohlcv]").waitFor();
    await page.locator("#editor .cm-content").click();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type("select vw from ohlcv");
    for (let i = 0; i < " from ohlcv".length; i++) await page.keyboard.press("ArrowLeft");
    await page.keyboard.type("a");
    await page.locator("#editor [role=option]", { hasText: /^vwap/ }).first().waitFor();
    expect(await page.locator("#editor [role=option]").first().textContent()).toMatch(/^vwap/);
    // A word that is complete needs no list; a word that SQLite lacks is never offered.
    await page.keyboard.type("p_exact");
    await page.locator("#editor [role=option]").first().waitFor({ state: "detached" });
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type("select longb");
    await page.keyboard.type(" 1 as wr");
    expect(await page.locator("#editor [role=option]", { hasText: /longblob|writetime/i }).count()).toBe(0);
  });

  itInBrowser("shows one row as figures, keeps the earlier result apart, and marks an error", async () => {
    const counts = "SELECT count(*) AS rows, max(close) AS highest FROM ohlcv";
    const page = await openLink(linkTo(counts), { expected: badRequest });
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await isDone(page);
    const [row] = pages.query<{ rows: number; highest: number }>(counts);
    const figures = () => page.locator("#figures b").allTextContents();
    const expected = [row?.rows, row?.highest].map((value) =>
      value?.toLocaleString("en", { maximumFractionDigits: 12 }),
    );
    expect(await figures()).toEqual(expected);
    expect(await page.isVisible("#views [data-view=lines]")).toBe(false);
    await takeScreenshot(page, "explore-figures");

    const copies = [["import mds", "w.sql("], ['from "mds-sync"', "warehouse.query("], ["/api/query"]];
    expect(await page.locator("#copies button").allTextContents()).toEqual(["Python", "TypeScript", "curl"]);
    for (const [at, parts] of copies.entries()) {
      await page.locator("#copies button").nth(at).click();
      await page.locator(`#copies button:nth-child(${at + 1})`, { hasText: "Copied" }).waitFor();
      const copied = await page.evaluate("navigator.clipboard.readText()");
      for (const part of [...parts, counts]) expect(copied).toContain(part);
    }

    // Another statement in a tab of its own, with an error in it.
    await page.click("#statements [aria-label='New statement']");
    await runTyped(page, "SELECT id, nme FROM assets");
    await page.locator("#error:visible").waitFor();
    expect(await page.locator("#editor .cm-error-place").textContent()).toBe("nme");
    expect(await page.textContent("#earlier:visible")).toBe("Result of the earlier statement:");
    const colour = (selector: string) =>
      page.evaluate(`getComputedStyle(document.querySelector(${JSON.stringify(selector)})).color`);
    expect(await colour("#figures b")).toBe(await colour("#earlier"));
    expect(await page.isVisible("#downloads")).toBe(false);
    await expectAccessible(page, "explore-error");
    await page.click("#statements button >> nth=0");
    await page.locator("#earlier").waitFor({ state: "hidden" });
    expect(await figures()).toEqual(expected);
    await page.reload();
    expect(await page.locator("#statements [aria-pressed]").allTextContents()).toEqual(["ohlcv", "assets"]);
  });

  itInBrowser(
    "draws results, downloads them whole, and warns of statements that read everything",
    async () => {
      const hours =
        "SELECT ts, name, open, high, low, close FROM bars_1h WHERE index_type = 'GWA' AND ts >= :from";
      const linked = linkTo(hours, { view: "lines", range: "1d" });
      const page = await openLink(linked, { dark: true, expected: badRequest });
      await page.waitForSelector('#canvas[data-lines="3"]');
      await expectAccessible(page, "explore-lines");
      for (const view of ["bars", "scatter", "candles"]) {
        await page.click(`[data-view=${view}]`);
        await page.waitForSelector("#canvas canvas");
      }
      expect(Number(await page.getAttribute("#canvas", "data-points"))).toBeGreaterThan(20);

      await follow(page, linkTo(bars));
      await isDone(page);
      const expected = pages.query(bars);
      const files: Record<string, Buffer> = {};
      const summary = await page.textContent("#summary");
      for (const format of ["csv", "json", "parquet"]) {
        const started = page.waitForEvent("download");
        await page.click(`#downloads [data-format=${format}]`);
        files[format] = await buffer(await (await started).createReadStream());
        await page.locator("#summary", { hasText: `bytes of ${format}` }).waitFor();
      }
      const size = new RegExp(`^${summary} · [\\d,]+ bytes of parquet$`);
      expect(await page.textContent("#summary")).toMatch(size);
      const [, ...lines] = String(files.csv).trim().split("\r\n");
      expect(lines).toEqual(expected.map((row) => Object.values(row).join(",")));
      expect(JSON.parse(String(files.json))).toEqual(expected);
      const bytes = new Uint8Array(files.parquet ?? []);
      expect(await parquetReadObjects({ file: bytes.buffer, compressors })).toEqual(expected);

      await follow(page, linkTo("SELECT count(*) FROM index_ticks"));
      await page.locator("#warnings li").waitFor();
      const warning = "⚠ reads the whole table index_tick_rows: bound ts and name the series";
      expect(await page.textContent("#warnings")).toBe(warning);
      await follow(page, linkTo("SELECT nme FROM assets"));
      await page.locator("#error:visible").waitFor();
      expect(await page.textContent("#error")).toBe("no such column nme; did you mean name?");
    },
  );

  itInBrowser("tells the rows read while a statement runs, and how it fails after that", async () => {
    const page = await openPage("about:blank");
    const begun = Date.now() / 1000;
    await follow(page, linkTo(slowly(3, "n")));
    type Seen = { readonly at: number; readonly text: string };
    const seen: Seen[] = [];
    await vi.waitFor(
      async () => {
        const shown = `({ at: Date.now() / 1000, text: document.getElementById("summary").textContent })`;
        seen.push((await page.evaluate(shown)) as Seen);
        expect(seen.at(-1)?.text).toMatch(/^[\d,]+ rows in [\d,]+ ms$/);
      },
      { timeout: timeLimit(30_000), interval: 100 },
    );
    const readAt = (await page.evaluate(`(async () => {
      const grid = document.getElementById("grid");
      const times = {};
      for (let top = 0; top < grid.scrollHeight; top += grid.clientHeight) {
        grid.scrollTop = top;
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
        for (const { children: [n, at] } of grid.querySelectorAll("[aria-rowindex]")) times[n.textContent] = Number(at.textContent);
      }
      return Object.values(times);
    })()`)) as number[];
    expect(readAt).toHaveLength(Number(seen.at(-1)?.text.split(" ")[0]?.replace(",", "")));
    const told = seen.flatMap(({ at, text }) => {
      const [, seconds, rows] = /^Running … (\d+) s, ([\d,]+) rows$/.exec(text) ?? [];
      return rows === undefined ? [] : [{ at, seconds: Number(seconds), rows: Number(rows) }];
    });
    const figures = [...new Set(told.map(({ rows }) => rows))];
    expect(figures.length).toBeGreaterThan(1);
    expect(figures).toEqual(figures.toSorted((a, b) => a - b));
    expect(told.at(-1)?.seconds).toBeGreaterThan(told[0]?.seconds ?? 0);
    const readUntil = (time: number) => readAt.filter((at) => at <= time).length;
    for (const { at, seconds, rows } of told) {
      expect(seconds).toBeLessThanOrEqual(at - begun + 0.5);
      expect(rows).toBeLessThanOrEqual(readUntil(at));
      expect(rows).toBeGreaterThanOrEqual(readUntil(at - timeLimit(3_000) / 1000));
    }

    // A link of this page, as the search has them.
    await page.evaluate(`{ const link = document.createElement("a");
      link.href = ${JSON.stringify(linkTo(slowly(2, "json('{' || n)")))};
      document.body.append(link);
      link.click(); }`);
    await page.locator("#summary", { hasText: /^Running … \d+ s, [\d,]+ rows$/ }).waitFor();
    await page.locator("#error:visible").waitFor();
    const malformed = "malformed JSON; the statement is at fault, not the warehouse";
    expect(await page.textContent("#error")).toBe(malformed);
    expect(await page.textContent("#summary")).toBe("");
    expect(await page.textContent("#earlier:visible")).toBe("Result of the earlier statement:");
  });

  itInBrowser("cancels a query that never ends, and runs questions of the cookbook on a phone", async () => {
    const endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c";
    const page = await openLink(linkTo(endless), phone);
    await page.locator("#summary", { hasText: /^Running … \d+ s$/ }).waitFor();
    await page.locator("#cancel:visible").click();
    await page.locator("#summary", { hasText: "Cancelled." }).waitFor();
    await page.click("#tab-questions");
    const questions = page.locator("#question-list button");
    expect(await questions.count()).toBe(22);
    await questions.nth(6).click();
    await isDone(page);
    await follow(page, new URL("/explore#question=17", pages.address()).href);
    await isDone(page);
    expect(await page.textContent("#editor .cm-content")).toContain("FROM latest_market_caps ORDER BY rank");
    await page.click("#tab-history");
    expect(await page.locator("#history-list li").count()).toBeGreaterThanOrEqual(2);
    await expectFits(page);
    await expectAccessible(page, "explore-phone");
  });
});
