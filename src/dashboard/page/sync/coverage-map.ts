// The heat map: one strip per series, with one column per hour, day or month and the fractions of the states stacked in each.

import {
  type CellRun,
  cellStates,
  type HeatmapGroup,
  type HeatmapResult,
} from "../../../model/answers/heatmap.ts";
import { pagePath } from "../../../model/answers/page-address.ts";
import { cssColour, watchTheme } from "../shared/layout.ts";
import { TYPING_SECONDS, throttle } from "../shared/live.ts";
import { byId, element, type Repetition, setText } from "../shared/page-base.ts";
import { poll } from "../shared/reading.ts";
import { count, countNoun, title } from "../shared/text-format.ts";
import { axis, describeCell, expand, type HeatmapCell, summarize } from "./heat-map.ts";

/** What a canvas shows. */
interface Strip {
  readonly canvas: HTMLCanvasElement;
  readonly name: string;
  readonly cells: readonly HeatmapCell[];
  readonly labels: readonly string[];
}

/** The requested number of rows, by group. */
const requestedRows = new Map<string, number>();
/** The groups without a gap whose series are shown all the same. */
const unfolded = new Set<string>();
const strips = new Map<Element, Strip>();
const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const strip = strips.get(target);
    if (strip) draw(strip);
  }
});

const nameInput = byId("filter-name", HTMLInputElement);
const problemsInput = byId("only-problems", HTMLInputElement);
const filter = { name: "", onlyProblems: false };
const isFiltered = () => filter.name !== "" || filter.onlyProblems;

function showCoverage({ columns, groups }: HeatmapResult, reload: () => void): void {
  const found = groups.reduce((sum, { matches }) => sum + matches, 0);
  setText("filter-note", isFiltered() ? describeFilter(found) : "");
  resized.disconnect();
  strips.clear();
  const nothing = element("p", { className: "soft empty" }, "Nothing is synced yet.");
  byId("coverage").replaceChildren(
    ...groups.map((group) => coverageGroup(group, columns[group.step], reload)),
    ...(groups.length === 0 && !isFiltered() ? [nothing] : []),
  );
  for (const strip of strips.values()) {
    draw(strip);
    resized.observe(strip.canvas);
  }
}

function describeFilter(found: number): string {
  if (found > 0) return `${countNoun(found, "line")} found`;
  if (filter.name === "") return "No problems.";
  return `No ${filter.onlyProblems ? "incomplete " : ""}series has “${filter.name}” in its name.`;
}

function coverageGroup(group: HeatmapGroup, labels: readonly string[], reload: () => void): HTMLElement {
  const name = [title(group.stream), group.index_type].filter(Boolean).join(" · ");
  const period = {
    hour: `last ${labels.length} hours`,
    day: `last ${labels.length} days`,
    month: `by month since ${labels[0]}`,
  }[group.step];
  const broken = group.lines - group.whole;
  // A map without a gap says everything in one line.
  const isFolded = broken === 0 && group.lines > 1 && !isFiltered() && !unfolded.has(group.key);
  const health = broken === 0 ? "all complete" : `${count(group.whole)} complete, ${count(broken)} with gaps`;
  const noun = group.index_type ? "series" : "subscription";
  const members = group.index_type ? `${count(group.lines)} series` : countNoun(group.lines, noun);
  const marks = axis(labels, labels.length / 8);
  const map = element(
    "div",
    { className: "map" },
    element(
      "div",
      { className: "axis", "aria-hidden": "true" },
      ...marks.map(([fraction, text]) => {
        const mark = element("span", {}, text);
        mark.style.left = `${(fraction * 100).toFixed(2)}%`;
        return mark;
      }),
    ),
    ...(group.lines > 1 && !isFiltered() ? strip("all", group.summary, labels, { isSummary: true }) : []),
    ...(isFolded ? [] : group.rows).flatMap((row) => {
      const name = row.name ?? row.index_id ?? "everything";
      return strip(name, row.runs, labels, { href: row.slug ? pagePath("bars", row.slug) : undefined });
    }),
  );
  const box = element(
    "div",
    { className: "group", "data-group": group.key },
    element(
      "h3",
      {},
      name,
      element("span", { className: "group-note" }, ` · ${members}, ${health} · ${period}`),
    ),
    map,
  );
  const left = group.matches - (isFolded ? 0 : group.rows.length);
  if (left > 0) {
    const more = element("button", { type: "button" }, `Show ${isFolded ? "all" : "more"} (${count(left)})`);
    more.addEventListener("click", () => {
      // The daemon rounds the number up to its next step.
      if (!isFolded) requestedRows.set(group.key, group.rows.length + 1);
      unfolded.add(group.key);
      reload();
    });
    box.append(more);
  }
  return box;
}

interface StripOptions {
  readonly isSummary?: boolean;
  readonly href?: string | undefined;
}

function strip(
  name: string,
  runs: readonly CellRun[],
  labels: readonly string[],
  { isSummary = false, href }: StripOptions,
): HTMLElement[] {
  const cells = expand(runs);
  const canvas = element("canvas", {
    className: isSummary ? "summary" : "",
    role: "img",
    "aria-label": `${name}: ${summarize(cells)}`,
  });
  strips.set(canvas, { canvas, name, cells, labels });
  const label = { className: isSummary ? "name all" : "name", title: name };
  return [href ? element("a", { ...label, href }, name) : element("span", label, name), canvas];
}

function coverageParams(): URLSearchParams {
  const params = filterParams();
  for (const [group, rows] of requestedRows) params.append("rows", `${group},${rows}`);
  return params;
}

function filterParams(): URLSearchParams {
  return new URLSearchParams({
    ...(filter.name ? { name: filter.name } : {}),
    ...(filter.onlyProblems ? { problems: "1" } : {}),
  });
}

/** The URL keeps the filter, so that it can be shared. */
function applyFilter(): void {
  filter.name = nameInput.value.trim();
  filter.onlyProblems = problemsInput.checked;
  requestedRows.clear();
  const query = String(filterParams());
  history.replaceState(null, "", query ? `/sync?${query}` : "/sync");
}

function showTip(event: PointerEvent): void {
  const tip = byId("tip");
  const shown = event.target instanceof Element ? strips.get(event.target) : undefined;
  tip.hidden = !shown;
  if (!shown) return;
  const box = shown.canvas.getBoundingClientRect();
  const fraction = (event.clientX - box.left) / box.width;
  const column = Math.min(shown.cells.length - 1, Math.max(0, Math.floor(fraction * shown.cells.length)));
  tip.textContent = `${shown.name} · ${shown.labels[column]}\n${describeCell(shown.cells[column] ?? [])}`;
  const left = Math.min(event.clientX + 12, document.documentElement.clientWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${Math.max(8, box.top - tip.offsetHeight - 6)}px`;
}

/**
 * Draws at the resolution of the canvas. Every state that occurs gets at least one pixel: one lost minute in a day must not
 * vanish by rounding.
 */
function draw({ canvas, cells }: Strip): void {
  const ratio = devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio);
  const height = Math.round(canvas.clientHeight * ratio);
  const pen = canvas.getContext("2d");
  if (width === 0 || !pen) return;
  canvas.width = width;
  canvas.height = height;
  const colours = cellStates.map(cssColour);
  const none = cssColour("none");
  const minPixels = Math.ceil(1.5 * ratio);
  const gap = width / cells.length > 3.5 * ratio ? Math.round(ratio) : 0;
  cells.forEach((fractions, column) => {
    const left = Math.round((column * width) / cells.length);
    const right = Math.round(((column + 1) * width) / cells.length);
    const across = Math.max(1, right - left - gap);
    pen.fillStyle = none;
    pen.fillRect(left, 0, across, height);
    // Worst state on top, so that even a small fraction is fully visible.
    const present = colours
      .map((colour, i) => ({ colour, fraction: fractions[i] ?? 0 }))
      .filter(({ fraction }) => fraction > 0);
    const total = present.reduce((sum, { fraction }) => sum + fraction, 0);
    let top = total >= 99 ? 0 : height - Math.round((height * total) / 100);
    for (const part of present.toReversed()) {
      const pixels = Math.max(minPixels, Math.round((height * part.fraction) / 100));
      const bottom = part === present[0] ? height : Math.min(height, top + pixels);
      pen.fillStyle = part.colour;
      pen.fillRect(left, top, across, bottom - top);
      top = bottom;
    }
  });
}

/** Shows the coverage, and again at an interval. */
export function startCoverage(onRead: (time: string) => void): Repetition {
  const asked = new URLSearchParams(location.search);
  nameInput.value = filter.name = asked.get("name") ?? "";
  problemsInput.checked = filter.onlyProblems = asked.get("problems") === "1";
  const reload = () => void coverage.now();
  const coverage = poll({
    kind: "coverage",
    what: "the coverage",
    seconds: 20,
    show: (answer) => {
      onRead(answer.generated_at);
      showCoverage(answer, reload);
    },
    params: coverageParams,
    // More rows are the same question: the list stays where it is.
    question: () => String(filterParams()),
  });
  const reloadTyped = throttle(TYPING_SECONDS, reload);
  byId("filter").addEventListener("input", () => {
    applyFilter();
    reloadTyped();
  });
  document.addEventListener("pointermove", showTip, { passive: true });
  document.addEventListener("pointerdown", showTip, { passive: true });
  document.addEventListener("scroll", () => (byId("tip").hidden = true), { passive: true });
  watchTheme(() => {
    for (const strip of strips.values()) draw(strip);
  });
  return coverage;
}
