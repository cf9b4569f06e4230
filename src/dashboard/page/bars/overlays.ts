// Other series over the candles, to compare their courses.

import { type ChartBarsResult, MAX_BARS, type SecondsRange } from "../../../model/answers/chart-bars.ts";
import type { SeriesMatch } from "../../../model/answers/heatmap.ts";
import type { BarWidth } from "../../../model/time.ts";
import { fetchJson } from "../shared/page-base.ts";
import type { OverlayLine } from "./bar-chart.ts";
import { type Close, closesOf, DAY_SECONDS, dayStart, type Slot, secondsOf, toPoints } from "./bar-slots.ts";
import { fetchBars } from "./fetch-bars.ts";

const MAX_OVERLAYS = 5;

interface Overlay {
  readonly slug: string;
  series?: SeriesMatch | undefined;
  isUnread?: boolean;
  width?: BarWidth;
  /** What was read of it. */
  range?: SecondsRange;
  closes: readonly Close[];
}

/** What the chart shows. */
interface ComparedBars extends Pick<ChartBarsResult, "from" | "to" | "width" | "ticks_from"> {
  readonly slots: readonly Slot[];
}

/** The compared series and what was read of them. */
export class SeriesOverlays {
  readonly #onLoad: (lines: readonly OverlayLine[]) => void;
  #chosen: readonly Overlay[] = [];
  #shown: ComparedBars | undefined;

  constructor(onLoad: (lines: readonly OverlayLine[]) => void) {
    this.#onLoad = onLoad;
  }

  get list(): readonly Readonly<Overlay>[] {
    return this.#chosen;
  }

  get slugs(): string[] {
    return this.#chosen.map(({ series, slug }) => series?.slug ?? slug);
  }

  /** Follows the URL. */
  setSlugs(slugs: readonly string[]): void {
    this.#chosen = slugs
      .slice(0, MAX_OVERLAYS)
      .map((slug) => this.#chosen.find((one) => one.slug === slug) ?? { slug, closes: [] });
  }

  add(series: SeriesMatch): void {
    if (this.#chosen.some(({ slug }) => slug === series.slug)) return;
    this.#chosen = [...this.#chosen, { slug: series.slug, series, closes: [] }].slice(-MAX_OVERLAYS);
    void this.load();
  }

  remove(overlay: Readonly<Overlay>): void {
    this.#chosen = this.#chosen.filter((one) => one !== overlay);
    void this.load();
  }

  /** Reads what the chart shows; a series that cannot be read has no line, and its name says so. */
  async load(shown = this.#shown): Promise<void> {
    this.#shown = shown;
    if (!shown) return;
    const wanted = this.#chosen;
    await Promise.all(
      wanted.map(async (overlay) => {
        overlay.isUnread = await readOverlay(overlay, shown).then(
          () => false,
          () => true,
        );
      }),
    );
    if (wanted !== this.#chosen) return;
    this.#onLoad(
      wanted.map(({ slug, closes }, i) => ({
        key: slug,
        colour: `line-${i + 1}`,
        points: toPoints(shown.slots, closes),
      })),
    );
  }
}

/** Reads what is not read yet, and the end again. */
async function readOverlay(overlay: Overlay, shown: ComparedBars): Promise<void> {
  const { to, width } = shown;
  overlay.series ??= (await fetchJson("series", { name: overlay.slug })).find(
    ({ match }) => match === "exact",
  );
  const { series } = overlay;
  if (!series) throw new Error(`no series is named ${overlay.slug}`);
  // The close of the day before is what a daily series was worth at the first candle.
  const from = shown.from - DAY_SECONDS;
  const isKnown =
    overlay.width === width && overlay.range && overlay.range.from <= to && overlay.range.to >= from;
  const known = isKnown ? overlay.range : undefined;
  if (!known) overlay.closes = [];
  const read = async (range: SecondsRange) => {
    for (const { width: own, ...part } of listParts(range, shown)) {
      const closes = closesOf(await fetchBars(series, own, part), own);
      const others = overlay.closes.filter(({ start }) => start < part.from || start >= part.to);
      overlay.closes = [...others, ...closes].sort((a, b) => a.end - b.end);
    }
  };
  if (known && from < known.from) await read({ from, to: known.from });
  // The bar of a day comes after its end.
  const tail = series.has_ticks ? 2 * secondsOf(width) : 2 * DAY_SECONDS;
  await read({ from: known ? Math.max(from, known.to - tail) : from, to });
  overlay.width = width;
  overlay.range = { from, to };
}

/** As the candles: daily bars before their first tick, then bars of their width, as many as one request returns. */
function listParts({ from, to }: SecondsRange, { width, ticks_from }: ComparedBars) {
  const firstTickDay = dayStart(ticks_from ?? Number.POSITIVE_INFINITY);
  const parts: (SecondsRange & { readonly width: BarWidth })[] = [];
  for (let start = from; start < to; ) {
    const own = start < firstTickDay ? "1d" : width;
    const most = dayStart(start + (MAX_BARS - 2) * secondsOf(own));
    const end = Math.min(to, own === width ? most : Math.min(most, firstTickDay));
    parts.push({ from: start, to: end, width: own });
    start = end;
  }
  return parts;
}
