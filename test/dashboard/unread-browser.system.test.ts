import type { Page } from "playwright-core";
import { describe, expect, vi } from "vitest";
import { blockRequests } from "../support/dashboard/blocked-requests.ts";
import { desktop, itInBrowser, openPage, phone, takeScreenshot } from "../support/dashboard/chromium.ts";
import { servePages } from "../support/dashboard/pages-harness.ts";
import { timeLimit } from "../support/time-limit.ts";

const pages = servePages();

const quotes = /No exchange|\d live exchanges?|Best bid/;
const contracts = /No (derivatives|futures|perpetuals|options)|Nothing was|contracts?, observed/;
const bars = /Nothing (is missing|in view)|No (bars|index ticks)|proven|\d ranges?,/;
/** What each page claims by each of its requests. */
const claimsOf: Record<string, Record<string, RegExp>> = {
  "/sync": {
    "/api/daemon": /Complete[.;]|left to fetch|Running for|None since the start|at once/,
    "/api/status": /in \d+ streams?|\bnothing\b|of a series|newest moments|mds\.sqlite/,
    "/api/missing": /Nothing is (missing|selected)|\d+ open, \d+ lost/,
    "/api/coverage": /Nothing is synced|complete,? |with gaps|No problems/,
    "/api/events": /^live$/m,
  },
  "/": {
    "/api/market": /No market caps|No asset|\d assets · market cap/,
    "/api/status": /\d rows,/,
    "/api/daemon": /\d rows,/,
  },
  "/assets/BTC": { "/api/asset": /On exchanges|Nothing is missing|Price, USD/ },
  "/exchanges": {
    "/api/pairs": quotes,
    "/api/quotes": quotes,
    "/api/spreads": /no two moments with quotes|^ask over bid/m,
  },
  "/derivatives": { "/api/derivative-assets": contracts, "/api/derivatives": contracts },
  "/bars": { "/api/daemon": bars, "/api/series": bars, "/api/bars": bars },
  "/explore": {
    "/api/schema": /Nothing has this name|^index_tick_spans$/m,
    "/api/query": /\d rows? in \d/,
  },
};
const reason = "the warehouse cannot be read";
/** What takes the place of the claims; a query is not sent again by itself. */
const pendingNote: Record<string, RegExp> = { "/api/events": /^connecting$/m, "/api/query": /Running …/ };
const failureNote: Record<string, RegExp> = {
  "/api/events": /^no connection$/m,
  "/api/query": new RegExp(`^${reason}$`, "m"),
};

async function openBlank() {
  const { page } = await openPage("about:blank", desktop);
  // The test decides when a page tries again.
  await page.clock.install();
  const text = () => page.locator("body").innerText();
  const soon = (pattern: RegExp) =>
    vi.waitFor(async () => expect(await text()).toMatch(pattern), { timeout: timeLimit(30_000) });
  return { page, text, soon };
}

/** The notes whose text leaves the room of the card that they are in. */
function findLooseNotes(page: Page): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll(":is(.card, .figure) .reading")].filter((note) => {
    const range = document.createRange();
    range.selectNodeContents(note);
    const card = note.closest(".card, .figure");
    const [text, box] = [range, card].map((one) => one.getBoundingClientRect());
    const right = box.right - Number.parseFloat(getComputedStyle(card).paddingRight);
    return note.checkVisibility() && (text.right > right || text.bottom > box.bottom);
  }).map((note) => note.textContent)`) as Promise<string[]>;
}

async function expectNoClaims(
  { page, text, soon }: Awaited<ReturnType<typeof openBlank>>,
  address: string,
  request: string,
  claim: RegExp,
): Promise<void> {
  const expectNone = async () => {
    expect(await text(), request).not.toMatch(claim);
    // A query of one's own says nothing about the rest of the page.
    if (request !== "/api/query") expect(await text(), request).not.toMatch(/^live$/m);
  };
  const blocked = await blockRequests(page, request);
  await page.goto(address);
  await soon(pendingNote[request] ?? /^Reading .+ …$/m);
  await vi.waitUntil(blocked.isReached, { timeout: timeLimit(30_000) });
  await expectNone();
  await blocked.failWith(reason);
  await soon(failureNote[request] ?? new RegExp(`^Could not read .+: ${reason}, again in 5 s$`, "m"));
  await expectNone();
  expect(await findLooseNotes(page), request).toEqual([]);
  await page.setViewportSize(phone);
  expect(await findLooseNotes(page), request).toEqual([]);
  await page.setViewportSize(desktop);
  await takeScreenshot(page, `unread-${new URL(address).pathname}-${request}`.replaceAll("/", "-"));
  await blocked.letThrough();
  if (request === "/api/query") await page.click("#run");
  await page.clock.runFor(5_000);
  await soon(claim);
  await soon(/^live$/m);
  expect(await text(), request).not.toContain(reason);
}

describe("a page claims nothing that it was not told", () => {
  for (const [path, claims] of Object.entries(claimsOf)) {
    const address = () => new URL(path, pages.address()).href;

    itInBrowser(`${path} while one of its requests is not answered, and while it fails`, async () => {
      const opened = await openBlank();
      const { page, soon } = opened;
      const requests = new Set<string>();
      page.on("request", (request) => requests.add(new URL(request.url()).pathname));
      await page.goto(address());
      for (const claim of Object.values(claims)) await soon(claim);
      const asked = [...requests].filter((request) => request.startsWith("/api/"));
      expect(new Set(asked)).toEqual(new Set([...Object.keys(claims), "/api/events"]));
      for (const [request, claim] of Object.entries(claims))
        await expectNoClaims(opened, address(), request, claim);
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

  itInBrowser("no page is called live while the daemon gets nothing from the service", async () => {
    const { page, text, soon } = await openBlank();
    for (const path of Object.keys(claimsOf)) {
      await page.goto(new URL(path, pages.address()).href);
      await soon(/^live$/m);
      pages.setProblem("no useful answer since 21:15");
      await soon(/^stuck$/m);
      expect(await text()).not.toMatch(/^live$/m);
      expect(await page.getAttribute("#live", "title")).toBe("no useful answer since 21:15");
      pages.setProblem(undefined);
      await soon(/^live$/m);
    }
  });
});

itInBrowser("/bars moves with a tick that was committed while it was read", async () => {
  const { page, soon } = await openBlank();
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let asked = 0;
  await page.route("**/api/bars?*", async (route) => {
    if (asked++ > 0) return;
    await released;
    await route.continue();
  });
  await page.goto(new URL("/bars/BTC?width=1h&range=6h", pages.address()).href);
  await vi.waitUntil(() => asked > 0, { timeout: timeLimit(30_000) });
  await soon(/^reading$/m);
  const tick = ["GWA", "btc-id", Date.now() * 1000, 64_321.5, null] as const;
  pages.notifyCommit({ streams: ["index_ticks"], ticks: [tick], ranges: [] });
  // The page has heard the tick once it tells what is told with it.
  pages.setProblem("told with the tick");
  await page.locator("#live[title='told with the tick']").waitFor();
  pages.setProblem(undefined);
  release();
  // If the page asks again, it gets no answer.
  await page.waitForSelector("#chart[data-bars]");
  expect(await page.textContent("#last")).toBe("64,321.50");
  expect(await page.textContent("#bar-details")).toMatch(/H 64,321\.50.*C 64,321\.50/);
});
