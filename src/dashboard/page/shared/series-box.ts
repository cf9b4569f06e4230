// A search box for series: type a part of a name, choose with the arrow keys or a tap.

import type { SeriesMatch } from "../../../model/answers/heatmap.ts";
import { combobox } from "./combobox.ts";
import { element, fetchJson, soft } from "./page-base.ts";

/** Says that a name is unknown. `similar` are the series with similar names. */
export function describeUnknown(name: string, similar: readonly SeriesMatch[]): string {
  return `No synced series is named “${name}”.${similar.length > 0 ? " Similar:" : ""}`;
}

export function seriesBox(
  input: HTMLInputElement,
  list: HTMLElement,
  onChoose: (series: SeriesMatch) => void,
): void {
  const { search, close } = combobox({
    input,
    list,
    find: (name) => fetchJson("series", { name }),
    show: (series, text) => {
      const isKnown = text === "" || (series[0]?.match ?? "similar") !== "similar";
      const unknown = element("div", { className: "soft none" }, describeUnknown(text, series));
      return [...(isKnown ? [] : [unknown]), ...series.map(toOption)];
    },
    isFirstActive: ({ match }) => match !== "similar",
    choose: onChoose,
  });
  input.addEventListener("focus", () => {
    input.dataset.name = input.value;
    input.value = "";
    search();
  });
  input.addEventListener("blur", () => {
    close();
    input.value = input.dataset.name ?? "";
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") input.blur();
  });
}

function toOption({ index_type, name, slug, has_ticks }: SeriesMatch): HTMLElement {
  const note = has_ticks ? index_type : `${index_type}, daily`;
  return element("div", { role: "option" }, element("b", {}, name || slug), soft(note));
}
