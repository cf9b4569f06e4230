// Other series over the candles, to compare their courses.

import type { ChartBar, SecondsRange } from "../../../model/answers/chart-bars.ts";
import { MAX_BARS } from "../../../model/answers/chart-bars.ts";
import type { SeriesMatch } from "../../../model/answers/heatmap.ts";
import type { BarWidth } from "../../../model/time.ts";
import { byId, element, fetchJson, soft } from "../shared/page-base.ts";
import { seriesBox } from "../shared/series-box.ts";
import type { OverlayLine } from "./bar-chart.ts";
import { fetchBars } from "./bar-feed.ts";
import { type Slot, secondsOf } from "./bar-slots.ts";

const MAX_OVERLAYS = 5;

interface Overlay {
  readonly slug: string;
  series?: SeriesMatch | undefined;
  isUnread?: boolean;
  width?: BarWidth;
  /** What was read of it. */
  range?: SecondsRange;
  bars: readonly ChartBar[];
}

/** What the chart shows. */
interface ShownBars extends SecondsRange {
  readonly width: BarWidth;
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
      wanted.map(({ slug, bars }, i) => ({
        key: slug,
        colour: `line-${i + 1}`,
        points: toPoints(slots, bars),
      })),
    );
  };
  const compare = byId("compare", HTMLInputElement);
  seriesBox(compare, byId("compare-list"), (series) => {
    compare.blur();
    if (!chosen.some(({ slug }) => slug === series.slug))
      change([...chosen, { slug: series.slug, series, bars: [] }]);
  });
  return {
    load,
    isEmpty: () => chosen.length === 0,
    slugs: () => chosen.map(({ series, slug }) => series?.slug ?? slug),
    /** Follows the URL. */
    setSlugs(slugs: readonly string[]): void {
      chosen = slugs
        .slice(0, MAX_OVERLAYS)
        .map((slug) => chosen.find((one) => one.slug === slug) ?? { slug, bars: [] });
      draw();
    },
  };
}

/** Reads what is not read yet, and the end again. */
async function readOverlay(overlay: Overlay, { from, to, width }: ShownBars): Promise<void> {
  overlay.series ??= (await fetchJson("series", { name: overlay.slug })).find(
    ({ match }) => match === "exact",
  );
  const { series } = overlay;
  if (!series) throw new Error(`no series is named ${overlay.slug}`);
  const isKnown =
    overlay.width === width && overlay.range && overlay.range.from <= to && overlay.range.to >= from;
  const known = isKnown ? overlay.range : undefined;
  if (!known) overlay.bars = [];
  const read = async (range: SecondsRange) => {
    // A longer range than one request returns is read as daily bars.
    const isLong = (range.to - range.from) / secondsOf(width) > MAX_BARS - 2;
    const { bars } = await fetchBars(series, isLong ? "1d" : width, range);
    overlay.bars = [...overlay.bars.filter(([time]) => time < range.from || time >= range.to), ...bars].sort(
      ([a], [b]) => a - b,
    );
  };
  if (known && from < known.from) await read({ from, to: known.from });
  const tail = known ? Math.max(from, known.to - 2 * secondsOf(width)) : from;
  await read({ from: tail, to });
  overlay.width = width;
  overlay.range = { from, to };
}

/** The last price in each slot. Another time would add a slot. */
function toPoints(slots: readonly Slot[], bars: readonly ChartBar[]): OverlayLine["points"] {
  let next = 0;
  return slots.flatMap(({ time, length }) => {
    let value: number | null = null;
    for (; next < bars.length && (bars[next]?.[0] ?? 0) < time + length; next++) {
      const [start = 0, , , , close = null] = bars[next] ?? [];
      if (start >= time && close !== null && close > 0) value = close;
    }
    return value === null ? [] : [{ time, value }];
  });
}
