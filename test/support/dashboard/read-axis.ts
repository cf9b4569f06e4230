import type { Page } from "playwright-core";

/** What is written on the time axis of the candles, from left to right, in pixels of the axis. */
interface AxisLabel {
  readonly text: string;
  readonly left: number;
  readonly middle: number;
  readonly right: number;
}

/** Notes what the next documents of a page write on their time axis; call it before the page is opened. */
export async function watchAxis(page: Page): Promise<void> {
  await page.addInitScript(`{
    const write = CanvasRenderingContext2D.prototype.fillText;
    let frame;
    window.axisLabels = [];
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
      write.call(this, text, x, y);
      const axis = document.querySelector("#chart tr:last-child td:nth-child(2) canvas");
      if (this.canvas !== axis || text === "") return;
      if (frame !== document.timeline.currentTime) window.axisLabels = [];
      frame = document.timeline.currentTime;
      const half = this.measureText(text).width / 2;
      window.axisLabels.push({ text, left: x - half, middle: x, right: x + half });
    };
  }`);
}

export async function readAxis(page: Page): Promise<{ labels: AxisLabel[]; width: number }> {
  const labels = (await page.evaluate("axisLabels")) as AxisLabel[];
  const width = await page.locator("#chart tr:last-child td:nth-child(2) canvas >> nth=0").evaluate(
    // The axis has no DOM types here.
    (canvas) => (canvas as unknown as { clientWidth: number }).clientWidth,
  );
  return { labels: labels.toSorted((a, b) => a.middle - b.middle), width };
}
