// Other series over the candles, to compare their courses.

import type { ChartBarsResult } from "../../../model/answers/chart-bars.ts";
import type { SeriesMatch } from "../../../model/answers/heatmap.ts";
import { byId, element } from "../shared/page-base.ts";
import { seriesBox } from "../shared/series-box.ts";
import type { OverlayLine } from "./bar-chart.ts";

const MAX_OVERLAYS = 5;

interface Overlay extends SeriesMatch {
  name: string;
  isUnread?: boolean;
}

interface OverlaysOptions {
  readonly params: URLSearchParams;
  /** Fetches the bars of a series in the shown range. */
  readonly fetchBars: (series: SeriesMatch) => Promise<ChartBarsResult>;
  readonly onChange: () => void;
  readonly onLoad: (lines: readonly OverlayLine[]) => void;
}

/** Keeps the list of compared series. */
export function seriesOverlays({ params, fetchBars, onChange, onLoad }: OverlaysOptions) {
  let chosen: readonly Overlay[] = params
    .getAll("with")
    .map((text) => {
      const [index_type = ""] = text.split(":");
      return { index_type, index_id: text.slice(text.indexOf(":") + 1), name: "" };
    })
    .slice(0, MAX_OVERLAYS);
  const keyOf = ({ index_type, index_id }: SeriesMatch) => `${index_type}:${index_id}`;

  const draw = () => {
    byId("overlays").hidden = chosen.length === 0;
    byId("overlays").replaceChildren(
      ...chosen.map((series, i) => {
        const mark = element("i");
        mark.style.background = `var(--line-${i + 1})`;
        const label = series.name || series.index_id;
        const remove = element("button", { type: "button", "aria-label": `Remove ${label}` }, "×");
        remove.addEventListener("click", () => change(chosen.filter((one) => one !== series)));
        return element(
          "li",
          {},
          mark,
          `${label} `,
          element("span", { className: "soft" }, series.isUnread ? "could not be read" : series.index_type),
          remove,
        );
      }),
    );
  };
  const change = (next: readonly Overlay[]) => {
    chosen = next.slice(-MAX_OVERLAYS);
    draw();
    onChange();
    void load();
  };
  /** Reads all of them; a series that cannot be read has no line, and its name says so. */
  const load = async () => {
    const wanted = chosen;
    const lines = await Promise.all(
      wanted.map(async (series, i) => {
        const answer = await fetchBars(series).catch(() => undefined);
        series.isUnread = !answer;
        if (answer) series.name = answer.name;
        return {
          key: keyOf(series),
          colour: `line-${i + 1}`,
          points: (answer?.bars ?? []).flatMap(([time, , , , close]) =>
            close !== null && close > 0 ? [{ time, value: close }] : [],
          ),
        };
      }),
    );
    if (wanted !== chosen) return;
    draw();
    onLoad(lines);
  };
  const compare = byId("compare", HTMLInputElement);
  seriesBox(compare, byId("compare-list"), (series) => {
    compare.blur();
    if (!chosen.some((one) => keyOf(one) === keyOf(series))) change([...chosen, { ...series }]);
  });
  draw();
  return {
    load,
    isEmpty: () => chosen.length === 0,
    params: () => chosen.map(keyOf),
  };
}
