import type { Page } from "playwright-core";
import { describe, expect, vi } from "vitest";
import { serveFilledPages } from "../support/daemon/served-pages-harness.ts";
import { desktop, itInBrowser, openPage } from "../support/dashboard/chromium.ts";

const daemon = serveFilledPages();
const WAIT_OPTIONS = { timeout: 30_000, interval: 100 };

const newestPrice = () =>
  daemon.query<{ price: number }>(
    "SELECT price FROM latest_index_ticks WHERE index_type = 'GWA' AND name = 'BTC'",
  )[0]?.price ?? 0;
const format = (price: number) =>
  price.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const shownPrice = (page: Page) =>
  page.locator("#ranking tr", { hasText: "BTC" }).locator(".price").textContent();
const state = (page: Page) => page.getAttribute("#live", "data-state");

describe("a page that is left open", () => {
  itInBrowser(
    "moves with each commit, shares one connection, and recovers when the daemon returns",
    async () => {
      const { page } = await openPage(new URL("/market", daemon.address()).href, desktop);
      await page.waitForSelector("#ranking tbody tr");
      await vi.waitUntil(async () => (await state(page)) === "live", WAIT_OPTIONS);
      const before = newestPrice();
      await vi.waitUntil(() => newestPrice() !== before, WAIT_OPTIONS);
      await vi.waitUntil(async () => (await shownPrice(page)) === format(newestPrice()), WAIT_OPTIONS);

      const second = await page.context().newPage();
      const streams: string[] = [];
      second.on("request", (request) => {
        if (request.url().endsWith("/api/events")) streams.push(request.url());
      });
      await second.goto(new URL("/bars?name=BTC&range=6h", daemon.address()).href);
      await second.waitForSelector("#chart[data-bars]");
      await vi.waitUntil(async () => (await state(second)) === "live", WAIT_OPTIONS);
      expect(streams).toEqual([]);
      const last = await second.textContent("#last");
      await vi.waitUntil(async () => (await second.textContent("#last")) !== last, WAIT_OPTIONS);

      await daemon.restart(async () => {
        await vi.waitUntil(async () => (await state(page)) === "stale", WAIT_OPTIONS);
        expect(await second.textContent("#live-text")).toBe("no connection");
      });
      await vi.waitUntil(async () => (await state(page)) === "live", WAIT_OPTIONS);
      await vi.waitUntil(async () => (await shownPrice(page)) === format(newestPrice()), WAIT_OPTIONS);
      // The tab with the connection closes: the other one takes over.
      await page.close();
      await vi.waitUntil(() => streams.length === 1, WAIT_OPTIONS);
      await vi.waitUntil(async () => (await state(second)) === "live", WAIT_OPTIONS);
    },
  );
});
