import { describe, expect, vi } from "vitest";
import {
  desktop,
  expectAccessible,
  expectFits,
  itInBrowser,
  openPage,
  phone,
} from "../support/dashboard/chromium.ts";
import { serveFilled } from "../support/dashboard/dashboard-harness.ts";
import { fillFunding, fillFuturesCurve } from "../support/dashboard/market-content.ts";

describe("/funding", () => {
  itInBrowser(
    "has the last rate of each perpetual, its year, the mean of a week and each period",
    async () => {
      const { address, query } = await serveFilled(fillFunding);
      const page = await openPage(new URL("funding", address).href);
      await page.waitForSelector("#funding tbody tr");
      const rows = () =>
        page
          .locator("#funding tbody tr")
          .evaluateAll((list) => list.map((row) => [...row.children].map((cell) => cell.textContent)));
      // 0.01 % each 8 hours are 10.95 % a year; of the last 21 rates Far has paid half three times.
      const near = "BTC NearNear|Near|BTC/USD|+0.0100 %|+10.95 %|+10.95 %|0.0000 %|2.00M|".split("|");
      const far = "BTC FarFar|Far|BTC/USD|+0.0050 %|+5.47 %|+10.17 %|0.0000 %|1.00M|".split("|");
      expect(await rows()).toEqual([near, far]);
      const lines = page.locator("#funding svg");
      expect(await lines.last().getAttribute("aria-label")).toBe("Funding of 7 days, 21 rates");
      const steps = (await lines.last().locator("path").getAttribute("d"))?.slice(1).split("L") ?? [];
      expect(new Set(steps.map((step) => step.split(",")[1])).size).toBe(2);
      const stored = query("SELECT DISTINCT funding_rate FROM latest_perpetuals ORDER BY 1 DESC");
      expect(stored).toEqual([{ funding_rate: 0.0001 }, { funding_rate: 0.00005 }]);
      await page.click("#funding th button >> text=Per year");
      await page.click("#funding th button >> text=Per year");
      expect(await rows()).toEqual([far, near]);
      await page.fill("#search", "near");
      await vi.waitFor(async () => expect(await rows()).toEqual([near]));
      await expectAccessible(page, "funding");
      await page.reload();
      await vi.waitFor(async () => expect(await rows()).toEqual([near]));
      await page.setViewportSize(phone);
      await expectFits(page, "funding-phone");
      await page.setViewportSize(desktop);
      await page.click("#funding a >> text=BTC/USD");
      await page.locator("#asset-title", { hasText: "BTC derivatives" }).waitFor();
    },
  );
});

describe("the futures of an asset", () => {
  itInBrowser("have a curve of six exchanges, which tells how many quote them", async () => {
    const { address, query } = await serveFilled(fillFuturesCurve);
    const page = await openPage(new URL("derivatives/BTC", address).href);
    await page.waitForSelector("#curve-plot canvas");
    const quoting = query(
      "SELECT DISTINCT exchange FROM latest_futures_curve WHERE pair = 'BTC/USD' AND annualised_basis IS NOT NULL",
    );
    expect(quoting).toHaveLength(7);
    expect(await page.textContent("#curve-note")).toContain(" · 6 of 7 exchanges");
    // The first label is that of the axis.
    expect(await page.locator("#curve-plot .u-label").count()).toBe(1 + 6);
    await page.selectOption("#exchange", "Exchange 3");
    await page.locator("#curve-note", { hasText: /per year$/ }).waitFor();
  });
});
