// Other series over the candles, to compare their courses.

import { type ChartBarsResult, MAX_BARS, type SecondsRange } from "../../../model/answers/chart-bars.ts";
import type { SeriesMatch } from "../../../model/answers/heatmap.ts";
import type { BarWidth } from "../../../model/time.ts";
import { byId, element, fetchJson, soft } from "../shared/page-base.ts";
import { seriesBox } from "../shared/series-box.ts";
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
interface ShownBars extends Pick<ChartBarsResult, "from" | "to" | "width" | "ticks_from"> {
  readonly slots: readonly Slot[];
}

interface OverlaysOptions {
  readonly onChange: () => void;
  readonly onLoad: (lines: readonly OverlayLine[]) => void;
}

/** Keeps the list of compared series. */
export function seriesOverlays({ onChange, onLoad }: OverlaysOptions) {
  let chosen: readonly Overlay[] = [];
  let shown: ShownBars | undefined;

  const draw = () => {
    byId("overlays").hidden = chosen.length === 0;
    byId("overlays").replaceChildren(
      ...chosen.map((overlay, i) => {
        const mark = element("i");
        mark.style.background = `var(--line-${i + 1})`;
        const label = overlay.series?.name || overlay.slug;
        const remove = element("button", { type: "button", "aria-label": `Remove ${label}` }, "×");
        remove.addEventListener("click", () => change(chosen.filter((one) => one !== overlay)));
        const note = overlay.isUnread ? "could not be read" : (overlay.series?.index_type ?? "");
        return element("li", {}, mark, `${label} `, soft(note), remove);
      }),
    );
  };
  const change = (next: readonly Overlay[]) => {
    chosen = next.slice(-MAX_OVERLAYS);
    draw();
    onChange();
    void load();
  };
  /** Reads what the chart shows; a series that cannot be read has no line, and its name says so. */
  const load = async (now = shown) => {
    shown = now;
    if (!shown) return;
    const [wanted, { slots }] = [chosen, shown];
    await Promise.all(
      wanted.map(async (overlay) => {
        overlay.isUnread = await readOverlay(overlay, shown as ShownBars).then(
          () => false,
          () => true,
        );
      }),
    );
    if (wanted !== chosen) return;
    draw();
    onLoad(
      wanted.map(({ slug, closes }, i) => ({
        key: slug,
        colour: `line-${i + 1}`,
        points: toPoints(slots, closes),
      })),
    );
  };
  const compare = byId("compare", HTMLInputElement);
  seriesBox(compare, byId("compare-list"), (series) => {
    compare.blur();
    if (!chosen.some(({ slug }) => slug === series.slug))
      change([...chosen, { slug: series.slug, series, closes: [] }]);
  });
  return {
    load,
    isEmpty: () => chosen.length === 0,
    slugs: () => chosen.map(({ series, slug }) => series?.slug ?? slug),
    /** Follows the URL. */
    setSlugs(slugs: readonly string[]): void {
      chosen = slugs
        .slice(0, MAX_OVERLAYS)
        .map((slug) => chosen.find((one) => one.slug === slug) ?? { slug, closes: [] });
      draw();
    },
  };
}

/** Reads what is not read yet, and the end again. */
async function readOverlay(overlay: Overlay, shown: ShownBars): Promise<void> {
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
function listParts({ from, to }: SecondsRange, { width, ticks_from }: ShownBars) {
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
