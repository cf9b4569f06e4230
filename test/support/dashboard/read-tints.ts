import type { Page } from "playwright-core";

/** Where the candles are drawn. */
export const pane = "#chart td:nth-child(2) canvas >> nth=0";

/** Points at a place of the pane, in pixels, and waits until the page tells the bar there. */
export async function pointAt(page: Page, x: number, y: number): Promise<void> {
  const box = await page.locator(pane).boundingBox();
  await page.mouse.move((box?.x ?? 0) + x, (box?.y ?? 0) + y);
  await page.evaluate("new Promise(requestAnimationFrame)");
}

const tints = {
  covered: [60, 150, 115],
  unconfirmed: [165, 211, 192],
  open: [223, 162, 53],
  lost: [196, 83, 74],
  empty: [106, 112, 118],
};

/** The tints of the background from left to right, each with its width and the number of candle pixels before it. */
export function readTints(page: Page) {
  return page.locator(pane).evaluate((element, tints) => {
    const canvas = element as unknown as {
      width: number;
      height: number;
      getContext(kind: "2d"): { getImageData(...box: number[]): { data: Uint8ClampedArray } };
    };
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    // At this height are neither labels nor candles.
    const row = 3 * canvas.width * 4;
    const distance = (at: number, colour: readonly number[]) =>
      colour.reduce((sum, part, i) => sum + Math.abs((data[at + i] ?? 0) - part), 0);
    const nearest = (at: number) =>
      Object.entries(tints).sort(([, a], [, b]) => distance(at, a) - distance(at, b))[0]?.[0] ?? "";
    const bands: { state: string; width: number; candles: number }[] = [];
    for (let x = 0; x < canvas.width; x++) {
      let candles = 0;
      for (let y = 0; y < canvas.height * 0.8; y++) {
        const at = (y * canvas.width + x) * 4;
        const isCandle = Math.min(distance(at, [47, 143, 109]), distance(at, [196, 83, 74])) < 16;
        if (data[at + 3] === 255 && isCandle) candles++;
      }
      // The edge of a tint is fainter than any tint.
      const state = (data[row + x * 4 + 3] ?? 0) < 12 ? "" : nearest(row + x * 4);
      const last = bands.at(-1);
      if (!last || last.state !== state) bands.push({ state, width: 1, candles });
      else {
        last.width++;
        last.candles += candles;
      }
    }
    return bands;
  }, tints);
}
