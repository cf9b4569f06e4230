// Other series over the candles, to compare their courses.

import { byId, element, fetchJson } from "../shared/page-base.js";
import { seriesBox } from "../shared/series-box.js";

const MAX_OVERLAYS = 5;

/** Keeps the list of compared series. `pathOf` gives the path of the bars of a series in the shown range. */
export function seriesOverlays({ params, pathOf, onChange, onLoad }) {
  let chosen = params
    .getAll("with")
    .map((text) => ({
      index_type: text.split(":")[0],
      index_id: text.slice(text.indexOf(":") + 1),
      name: "",
    }))
    .slice(0, MAX_OVERLAYS);
  const keyOf = ({ index_type, index_id }) => `${index_type}:${index_id}`;

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
  const change = (next) => {
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
        const answer = await fetchJson(pathOf(series)).catch(() => undefined);
        series.isUnread = !answer;
        if (answer) series.name = answer.name;
        const points = (answer?.bars ?? []).filter(([, , , , close]) => close > 0);
        return {
          key: keyOf(series),
          colour: `line-${i + 1}`,
          points: points.map(([time, , , , close]) => ({ time, value: close })),
        };
      }),
    );
    if (wanted !== chosen) return;
    draw();
    onLoad(lines);
  };
  seriesBox(byId("compare"), byId("compare-list"), (series) => {
    byId("compare").blur();
    if (!chosen.some((one) => keyOf(one) === keyOf(series))) change([...chosen, series]);
  });
  draw();
  return {
    load,
    isEmpty: () => chosen.length === 0,
    params: () => chosen.map((series) => ["with", keyOf(series)]),
  };
}
