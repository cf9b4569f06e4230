// A search box for series: type a part of a name, choose with the arrow keys or a tap.

import type { SeriesMatch } from "../../../model/answers/heatmap.ts";
import { describeError, element, fetchJson } from "./page-base.ts";

/** Says that a name is unknown. `similar` are the series with similar names. */
export function describeUnknown(name: string, similar: readonly SeriesMatch[]): string {
  return `No synced series is named “${name}”.${similar.length > 0 ? " Similar:" : ""}`;
}

export function seriesBox(
  input: HTMLInputElement,
  list: HTMLElement,
  onChoose: (series: SeriesMatch) => void,
): void {
  let found: readonly SeriesMatch[] = [];
  let active = -1;
  let lastRequest = 0;

  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    active = -1;
  };
  const activate = (next: number) => {
    active = found.length === 0 ? -1 : (next + 2 * found.length) % found.length;
    const options = [...list.querySelectorAll("[role=option]")];
    options.forEach((option, i) => {
      option.setAttribute("aria-selected", String(i === active));
    });
    const option = options[active];
    if (!option) return;
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  };
  const choose = (series: SeriesMatch | undefined) => {
    close();
    if (series) onChoose(series);
  };
  const show = (series: readonly SeriesMatch[]) => {
    found = series;
    list.replaceChildren(
      ...series.map(({ index_type, name, slug, has_ticks }, i) =>
        element(
          "div",
          { id: `${list.id}-${i}`, role: "option", "aria-selected": "false" },
          element("b", {}, name || slug),
          element("span", { className: "soft" }, has_ticks ? index_type : `${index_type}, daily`),
        ),
      ),
    );
    const typed = input.value.trim();
    const isUnknown = typed !== "" && (series.length === 0 || series[0]?.match === "similar");
    if (isUnknown) list.prepend(element("div", { className: "soft none" }, describeUnknown(typed, series)));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    active = -1;
    if (!isUnknown) activate(0);
  };
  const search = async () => {
    const request = ++lastRequest;
    try {
      const series = await fetchJson("series", { name: input.value.trim() });
      // Responses may arrive out of order; only the last request counts.
      if (request === lastRequest && document.activeElement === input) show(series);
    } catch (error) {
      if (request !== lastRequest) return;
      close();
      found = [];
      list.replaceChildren(
        element("div", { className: "soft none" }, `Could not read the series: ${describeError(error)}.`),
      );
      list.hidden = false;
    }
  };

  input.addEventListener("input", search);
  input.addEventListener("focus", () => {
    input.select();
    input.dataset.name = input.value;
    input.value = "";
    void search();
  });
  input.addEventListener("blur", () => {
    lastRequest++;
    close();
    input.value = input.dataset.name ?? "";
  });
  input.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0 && !list.hidden) activate(active + step);
    else if (event.key === "Enter" && found[active]) choose(found[active]);
    else if (event.key === "Escape") input.blur();
    else if (event.key !== "Enter") return;
    event.preventDefault();
  });
  // `pointerdown` comes before the input loses the focus and the list closes.
  list.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    const option = event.target instanceof Element && event.target.closest("[role=option]");
    if (option) choose(found[[...list.querySelectorAll("[role=option]")].indexOf(option)]);
  });
}
