import { afterAll, beforeAll, describe, expect, onTestFinished } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import {
  countColours,
  desktop,
  expectAccessible,
  horizontalOverflow,
  itInBrowser,
  openPage,
  phone,
  takeScreenshot,
} from "../support/dashboard/chromium.ts";
import { recordSampleErrors, serveDashboard } from "../support/dashboard/dashboard-harness.ts";
import { hostileName, openFilledWarehouse } from "../support/dashboard/filled-warehouse.ts";

let served: Awaited<ReturnType<typeof serveDashboard>>;
beforeAll(async () => {
  served = await serveDashboard(openFilledWarehouse(undefined, afterAll).path, systemClock, afterAll);
  recordSampleErrors(served.errors);
  served.rate.count();
});

async function openDashboard(options: { width: number; height: number; dark?: boolean }) {
  const opened = await openPage(served.address, options);
  await opened.page.waitForSelector('[data-group="index_ticks:GWA"] canvas');
  await opened.page.waitForSelector("#missing tbody tr");
  await opened.page.waitForSelector("#ticks .tick");
  await opened.page.waitForSelector('[data-stream="index_ticks"] .age');
  return opened;
}

describe("the dashboard", () => {
  for (const [size, viewport] of Object.entries({ phone, desktop })) {
    itInBrowser(
      `shows rows, ages, the heat map, gaps and errors on a ${size}, without a request to another host`,
      async () => {
        const { page, complaints, elsewhere } = await openDashboard(viewport);
        expect(await page.textContent("#sentence")).toMatch(
          /^Following the live feed: \d+ ranges left to fetch/,
        );
        expect(await page.textContent("#rows")).not.toBe("–");
        expect(await page.textContent('[data-stream="index_ticks"] .age')).toMatch(/^[\d.]+ (s|min)$/);
        expect(await page.textContent('[data-stream="derivative_ticks"] .remark')).toContain(
          "read:derivatives",
        );
        expect(await page.locator('[data-group="index_ticks:GWA"] .name').allTextContents()).toEqual([
          "all",
          ..."BTC ETH XRP SOL ADA DOT LTC AVAX".split(" "),
        ]);
        const colours = await countColours(page, '[data-group="index_ticks:GWA"] canvas.summary');
        expect(Object.keys(colours).length).toBeGreaterThanOrEqual(3);
        expect(await page.locator("#missing tbody tr").count()).toBeGreaterThan(5);
        expect(await page.locator("#errors li").count()).toBe(2);
        expect(await page.getAttribute("#spark .curve", "d")).toMatch(/^M0/);
        expect(await horizontalOverflow(page)).toBeLessThanOrEqual(0);
        await takeScreenshot(page, size);
        await expectAccessible(page);
        expect(complaints).toEqual([]);
        expect(elsewhere).toEqual([]);
      },
    );
  }

  itInBrowser("shows more rows on request, and hostile names as text", async () => {
    const { page, complaints, elsewhere } = await openDashboard({ ...desktop, dark: true });
    await page.click('[data-group="index_ticks:GWA"] button');
    await page.waitForSelector('[data-group="index_ticks:GWA"] canvas >> nth=14');
    expect(await page.locator('[data-group="index_ticks:GWA"] .name').last().textContent()).toBe(hostileName);
    await page.hover('[data-group="index_ticks:GWA"] canvas >> nth=14');
    expect(await page.textContent("#tip")).toContain(hostileName);
    await takeScreenshot(page, "dark");
    expect(await page.locator("#coverage img, #missing img, #errors img, #tip img").count()).toBe(0);
    expect(await page.title()).toBe("mds-sync");
    expect(complaints).toEqual([]);
    expect(elsewhere).toEqual([]);
  });

  itInBrowser("filters the heat map by name and by problems, and keeps the filter in the URL", async () => {
    served.daemon.backfill = { percent: 42, rowsPerSecond: 81_000, secondsLeft: 190 };
    onTestFinished(() => {
      served.daemon.backfill = undefined;
    });
    const { page } = await openDashboard(desktop);
    const names = () => page.locator('[data-group="index_ticks:GWA"] .name').allTextContents();
    const all = await names();
    await page.fill("#filter-name", "bt");
    await page.locator("#filter-note", { hasText: / found$/ }).waitFor();
    expect(await names()).toEqual(["BTC"]);
    await page.fill("#filter-name", "");
    await page.check("#only-problems");
    await page.locator('[data-group="index_ticks:GWA"] .all').waitFor({ state: "detached" });
    expect((await names()).length).toBeLessThan(all.length);
    expect(new URL(page.url()).search).toBe("?problems=1");
    await page.fill("#filter-name", "no such");
    await page.locator("#filter-note", { hasText: /^No / }).waitFor();
    expect(await page.textContent("#filter-note")).toBe("No incomplete series has “no such” in its name.");
    expect(await page.textContent("#since")).toContain("first fill 42 %, about 3.2 min left, 81K rows/s");
    await page.goto(new URL("/?problems=1", served.address).href);
    await page.waitForSelector('[data-group="index_ticks:GWA"] canvas');
    expect(await page.isChecked("#only-problems")).toBe(true);
    expect((await names()).length).toBeLessThan(all.length);
  });

  itInBrowser("shows that the daemon is stuck", async () => {
    served.daemon.problem = "nothing has been committed for 10 minutes";
    onTestFinished(() => {
      served.daemon.problem = undefined;
    });
    const { page } = await openDashboard(phone);
    expect(await page.getAttribute("#state", "data-tone")).toBe("ill");
    expect(await page.textContent("#sentence")).toBe("Stuck: nothing has been committed for 10 minutes.");
  });
});
