import type { Page } from "playwright-core";
import { describe, expect, onTestFinished, vi } from "vitest";
import {
  blockRequests,
  desktop,
  itInBrowser,
  openPage,
  phone,
  takeScreenshot,
} from "../support/dashboard/chromium.ts";
import { servePages } from "../support/dashboard/pages-harness.ts";
import { timeLimit } from "../support/time-limit.ts";
import { tick } from "../support/warehouse/records.ts";
import { writeTicks } from "../support/warehouse/write-records.ts";

const pages = servePages();

const quotes = /No exchange|\d live exchanges?|Best bid/;
const contracts = /No (derivatives|futures|perpetuals|options)|Nothing was|contracts?, observed/;
const bars = /Nothing (is missing|in view)|No (bars|index ticks)|proven|\d ranges?,/;
const spreads = /Not enough quotes|^ask over bid/m;
const market = /No market caps|No asset|\d assets · market cap/;
const proof = /\d rows,/;
/** What each page claims by each of its requests. */
const claimsOf: Record<string, Record<string, RegExp>> = {
  "/sync": {
    "/api/daemon": /Complete[.;]|left to fetch|Running for|None since the start|at once/,
    "/api/status": /in \d+ streams?|\bnothing\b|of a series|newest moments|mds\.sqlite/,
    "/api/missing": /Nothing is (missing|selected)|\d+ open, \d+ lost/,
    "/api/coverage": /Nothing is synced|complete,? |with gaps|No problems/,
    "/api/events": /^live$/m,
  },
  "/": { "/api/market": market, "/api/status": proof, "/api/daemon": proof },
  "/assets/BTC": { "/api/asset": /On exchanges|Nothing is missing|Price, USD/ },
  "/exchanges": { "/api/pairs": quotes, "/api/quotes": quotes, "/api/spreads": spreads },
  "/derivatives": { "/api/derivative-assets": contracts, "/api/derivatives": contracts },
  "/funding": { "/api/funding": /No perpetuals|Per year/ },
  "/bars": { "/api/daemon": bars, "/api/series": bars, "/api/bars": bars },
  "/explore": { "/api/schema": /Nothing has this name|^index_tick_spans$/m, "/api/query": /\d rows? in \d/ },
};
const reason = "the warehouse cannot be read";
async function openBlank() {
  const page = await openPage("about:blank", { expected: /Failed to load resource|ERR_/ });
  // The test decides when a page tries again.
  await page.clock.install();
  const text = () => page.locator("body").innerText();
  /** `pace`: how much of the page's time passes with each look. */
  const soon = (pattern: RegExp, pace = 0) =>
    vi.waitFor(
      async () => {
        if (pace > 0) await page.clock.runFor(pace);
        expect(await text()).toMatch(pattern);
      },
      { timeout: timeLimit(30_000) },
    );
  return { page, text, soon };
}

/** The notes whose text leaves the room of the card that they are in. */
function findLooseNotes(page: Page): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll(".card .reading")].filter((note) => {
    const range = document.createRange();
    range.selectNodeContents(note);
    const card = note.closest(".card");
    const [text, box] = [range, card].map((one) => one.getBoundingClientRect());
    const right = box.right - Number.parseFloat(getComputedStyle(card).paddingRight);
    return note.checkVisibility() && (text.right > right || text.bottom > box.bottom);
  }).map((note) => note.textContent)`) as Promise<string[]>;
}

describe("a page claims nothing that it was not told", () => {
  for (const [path, claims] of Object.entries(claimsOf)) {
    const address = () => new URL(path, pages.address()).href;

    itInBrowser(`${path} of what is not answered or fails, and all of it in the end`, async () => {
      const { page, text, soon } = await openBlank();
      const requests = new Set<string>();
      page.on("request", (request) => requests.add(new URL(request.url()).pathname));
      const blocked = new Map<string, Awaited<ReturnType<typeof blockRequests>>>();
      for (const request of Object.keys(claims)) blocked.set(request, await blockRequests(page, request));
      const expectNone = async () => {
        for (const request of blocked.keys()) {
          const [shown, claim] = [await text(), claims[request]];
          if (claim) expect(shown, request).not.toMatch(claim);
          // A query of one's own says nothing about the rest of the page.
          if (request !== "/api/query") expect(shown, request).not.toMatch(/^live$/m);
        }
      };
      await page.goto(address());
      await soon(/^Reading .+ …$/m);
      await expectNone();
      // Those that are not asked for before another one is answered fail at once.
      for (const { failWith } of blocked.values()) await failWith(reason);
      await soon(new RegExp(`^Could not read .+: ${reason}, again in 5 s$`, "m"));
      await expectNone();
      expect(await findLooseNotes(page)).toEqual([]);
      await page.setViewportSize(phone);
      expect(await findLooseNotes(page)).toEqual([]);
      await page.setViewportSize(desktop);
      await takeScreenshot(page, `unread${path}`.replaceAll("/", "-"));
      for (const [request, { letThrough }] of blocked) {
        await letThrough();
        blocked.delete(request);
        if (request === "/api/query") await page.click("#run");
        const claim = claims[request] ?? /$/;
        // What two requests tell is told when both are answered.
        const isShared = [...blocked.keys()].some((other) => claims[other] === claim);
        await soon(isShared ? /^/ : claim, 1_000);
        await expectNone();
      }
      await soon(/^live$/m, 1_000);
      expect(await text()).not.toContain(reason);
      const asked = [...requests].filter((request) => request.startsWith("/api/"));
      expect(new Set(asked)).toEqual(new Set([...Object.keys(claims), "/api/events"]));
      // Nor is it called live while the daemon gets nothing from the service.
      onTestFinished(() => pages.setProblem(undefined));
      pages.setProblem("no useful answer since 21:15");
      await soon(/^stuck$/m);
      expect(await text()).not.toMatch(/^live$/m);
      expect(await page.getAttribute("#live", "title")).toBe("no useful answer since 21:15");
      pages.setProblem(undefined);
      await soon(/^live$/m);
    });
  }

  itInBrowser("/sync takes back what it was told once the daemon no longer answers", async () => {
    const { page, text, soon } = await openBlank();
    const claims = Object.values(claimsOf["/sync"] ?? {});
    await page.goto(new URL("/sync", pages.address()).href);
    for (const claim of claims) await soon(claim);
    await page.context().setOffline(true);
    await page.clock.runFor(30_000);
    await soon(/Could not read the daemon’s state: the daemon does not answer, again in 5 s/);
    await soon(/Could not read the gaps/);
    await soon(/Could not read the coverage/);
    for (const claim of claims) expect(await text()).not.toMatch(claim);
    await page.context().setOffline(false);
    await page.clock.runFor(5_000);
    for (const claim of claims) await soon(claim);
  });
});

itInBrowser("/bars moves with a tick that was committed", async () => {
  const page = await openPage(new URL("/bars/BTC?width=1h&range=6h", pages.address()).href);
  await page.waitForSelector("#chart[data-bars]");
  await page.locator("#live[data-state=live]").waitFor();
  const ts = Date.now() * 1000;
  pages.write((transaction) => writeTicks(transaction, [tick(ts, "64321.5", { indexId: "btc-id" })], "live"));
  const committed = ["GWA", "btc-id", ts, 64_321.5] as const;
  pages.notifyCommit({ streams: ["index_ticks"], ticks: [committed], ranges: [] });
  await page.locator("#last", { hasText: "64,321.50" }).waitFor({ timeout: timeLimit(10_000) });
  expect(await page.textContent("#bar-details")).toMatch(/H 64,321\.50.*C 64,321\.50/);
});
