import type { Page } from "playwright-core";

/** A text on a canvas; `middle` is where it was placed, in pixels. */
interface DrawnText {
  readonly text: string;
  readonly left: number;
  readonly middle: number;
  readonly right: number;
}

/** Notes the texts that the next documents of a page draw: those of the last frame of each canvas. */
export async function watchDrawnTexts(page: Page): Promise<void> {
  await page.addInitScript(`{
    const draw = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, ...more) {
      draw.call(this, text, x, ...more);
      const frame = document.timeline.currentTime;
      if (this.canvas.drawn?.frame !== frame) this.canvas.drawn = { frame, texts: [] };
      const half = this.measureText(text).width / 2;
      if (text !== "") this.canvas.drawn.texts.push({ text, left: x - half, middle: x, right: x + half });
    };
  }`);
}

/** What is drawn on a canvas, from left to right, its width in pixels, and the frame that drew it. */
export async function readDrawnTexts(page: Page, selector: string) {
  const canvas = page.locator(selector).first();
  const { frame, texts, width } = await canvas.evaluate((element) => {
    const { drawn, clientWidth } = element as unknown as {
      drawn?: { frame: number; texts: DrawnText[] };
      clientWidth: number;
    };
    return { frame: 0, texts: [], ...drawn, width: clientWidth };
  });
  return { frame, width, labels: texts.toSorted((a, b) => a.middle - b.middle) };
}
