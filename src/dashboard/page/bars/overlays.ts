// Other series over the candles, to compare their courses.

import type { ChartBarsResult } from "../../../model/answers/chart-bars.ts";
import type { SeriesMatch } from "../../../model/answers/heatmap.ts";
import { fetchJson } from "../shared/page-base.ts";
import type { OverlayLine } from "./bar-chart.ts";
import { BarFeed, type ReadBars } from "./bar-feed.ts";
import { type Comparison, closesOf, comparePoints, DAY_SECONDS, type Slot, toPoints } from "./bar-slots.ts";

const MAX_OVERLAYS = 5;

/** `of`: the figure of a ticker in place of its price. */
export const barsReader =
  (of: string): ReadBars =>
  ({ index_type, index_id }, width, { from, to }) => {
    const toIso = (seconds: number) => new Date(Math.floor(seconds) * 1000).toISOString();
    const range = { from: toIso(from), ...(to !== undefined && { to: toIso(to) }), ...(of && { of }) };
    return fetchJson("bars", { type: index_type, id: index_id, width, ...range });
  };

interface Overlay {
  readonly slug: string;
  series?: SeriesMatch | undefined;
  isUnread?: boolean;
  feed?: BarFeed;
}

type ComparedBars = Pick<ChartBarsResult, "from" | "to" | "width"> & { readonly slots: readonly Slot[] };

export class SeriesOverlays {
  readonly #now: () => number;
  readonly #onLoad: (lines: readonly OverlayLine[]) => void;
  list: readonly Overlay[] = [];
  how: Comparison = "course";
  #shown: ComparedBars | undefined;

  constructor(now: () => number, onLoad: (lines: readonly OverlayLine[]) => void) {
    this.#now = now;
    this.#onLoad = onLoad;
  }

  setSlugs(slugs: readonly string[]): void {
    this.list = slugs
      .slice(0, MAX_OVERLAYS)
      .map((slug) => this.list.find((one) => one.slug === slug) ?? { slug });
  }

  add(series: SeriesMatch): void {
    if (this.list.some(({ slug }) => slug === series.slug)) return;
    this.list = [...this.list, { slug: series.slug, series }].slice(-MAX_OVERLAYS);
    void this.load();
  }

  remove(overlay: Overlay): void {
    this.list = this.list.filter((one) => one !== overlay);
    void this.load();
  }

  /** Reads what the chart shows; a series that cannot be read has no line, and its name says so. */
  async load(shown = this.#shown): Promise<void> {
    this.#shown = shown;
    if (!shown) return;
    const wanted = this.list;
    await Promise.all(
      wanted.map(async (overlay) => {
        const reading = readOverlay(overlay, shown, this.#now).then(() => false);
        overlay.isUnread = await reading.catch(() => true);
      }),
    );
    if (wanted !== this.list) return;
    const lines = wanted.map(({ slug, feed }, i) => ({
      key: slug,
      colour: `line-${i + 1}`,
      points: toPoints(shown.slots, feed?.loaded ? closesOf(feed.loaded) : []),
    }));
    const { how } = this;
    const compare = (line: (typeof lines)[number]) => ({ ...line, points: comparePoints(line.points, how) });
    this.#onLoad(how === "course" ? lines : lines.slice(0, 1).map(compare));
  }
}

/** Reads what is not read yet, and the end again. */
async function readOverlay(overlay: Overlay, shown: ComparedBars, now: () => number): Promise<void> {
  const { to, width } = shown;
  // The close of the day before is what a daily series was worth at the first candle.
  const from = shown.from - DAY_SECONDS;
  const isExact = ({ match }: SeriesMatch) => match === "exact";
  overlay.series ??= (await fetchJson("series", { name: overlay.slug })).find(isExact);
  const { series, feed } = overlay;
  if (!series) throw new Error(`no series is named ${overlay.slug}`);
  if (feed?.options.width === width && feed.loaded && feed.loaded.from <= to && feed.loaded.to >= from)
    await feed.refresh();
  else {
    overlay.feed = new BarFeed({ series, width, now, read: barsReader("") });
    await overlay.feed.start({ from, to });
  }
  await overlay.feed?.extendTo({ from, to });
}
