// A search box for series: type a part of a name, choose with the arrow keys or a tap.

import { ask, element } from "./asking.js";

/** Calls `chosen` with {index_type, index_id, name}. */
export function seriesBox(input, list, chosen) {
  let found = [];
  let active = -1;
  let asked = 0;

  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    active = -1;
  };
  const mark = (next) => {
    active = found.length === 0 ? -1 : (next + found.length) % found.length;
    [...list.children].forEach((option, i) => {
      option.setAttribute("aria-selected", String(i === active));
    });
    const option = list.children[active];
    if (active < 0) return;
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  };
  const take = (series) => {
    close();
    if (series) chosen(series);
  };
  const show = (series) => {
    found = series;
    list.replaceChildren(
      ...series.map(({ index_type, name }, i) =>
        element(
          "div",
          { id: `series-${i}`, role: "option", "aria-selected": "false" },
          element("b", {}, name),
          element("span", { className: "soft" }, index_type),
        ),
      ),
    );
    if (series.length === 0)
      list.append(element("div", { className: "soft none" }, "No series has that name."));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(0);
  };
  const search = async () => {
    const turn = ++asked;
    try {
      const series = await ask(`/api/series?name=${encodeURIComponent(input.value.trim())}`);
      // Answers may overtake each other; only the last question counts.
      if (turn === asked && document.activeElement === input) show(series);
    } catch {
      close();
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
    asked++;
    close();
    input.value = input.dataset.name ?? "";
  });
  input.addEventListener("keydown", (event) => {
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in moves && !list.hidden) mark(active + moves[event.key]);
    else if (event.key === "Enter") take(found[active]);
    else if (event.key === "Escape") input.blur();
    else return;
    event.preventDefault();
  });
  // Before the box loses the focus, and with it the list.
  list.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    const option = event.target.closest("[role=option]");
    if (option) take(found[[...list.children].indexOf(option)]);
  });
}
