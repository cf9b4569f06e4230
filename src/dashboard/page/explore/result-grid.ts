// A table of many rows: only those in view are in the document.

import type { QueryAnswer, ScreenValue } from "../../../model/answers/query.ts";
import { element } from "../shared/page-base.ts";

const ROW_PX = 28;
/** Rows beyond the edge of the view, so that scrolling never shows a blank. */
const SPARE_ROWS = 12;
const SAMPLE_ROWS = 300;
const MIN_COLUMN_PX = 64;
const MAX_COLUMN_PX = 340;
const CHAR_PX = 7.6;

type Row = QueryAnswer["rows"][number];

const text = (value: ScreenValue | undefined) => (value === null || value === undefined ? "" : String(value));

/** A column of numbers is aligned to the right. */
export function isNumeric(rows: readonly Row[], column: number): boolean {
  const known = rows.slice(0, SAMPLE_ROWS).filter((row) => row[column] !== null);
  return known.length > 0 && known.every((row) => typeof row[column] === "number");
}

function widthOf(name: string, rows: readonly Row[], column: number): number {
  const longest = rows
    .slice(0, SAMPLE_ROWS)
    .reduce((most, row) => Math.max(most, text(row[column]).length), name.length + 2);
  return Math.round(Math.min(MAX_COLUMN_PX, Math.max(MIN_COLUMN_PX, longest * CHAR_PX + 26)));
}

/** NULL last, numbers before texts. */
function compareValues(a: ScreenValue, b: ScreenValue): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;
}

export function resultGrid(container: HTMLElement): { readonly show: (result: QueryAnswer) => void } {
  const head = element("div", { className: "grid-head", role: "row" });
  const body = element("div", { className: "grid-body", role: "rowgroup" });
  container.setAttribute("role", "table");
  container.tabIndex = 0;
  container.append(head, body);
  let columns: { readonly name: string; readonly isNumeric: boolean }[] = [];
  let rows: readonly Row[] = [];
  let sorted: readonly Row[] = [];
  let sort = { column: -1, isDescending: false };
  let shown = { from: -1, to: -1 };

  const draw = () => {
    const from = Math.max(0, Math.floor(container.scrollTop / ROW_PX) - SPARE_ROWS);
    const to = Math.min(
      sorted.length,
      Math.ceil((container.scrollTop + container.clientHeight) / ROW_PX) + SPARE_ROWS,
    );
    if (from === shown.from && to === shown.to) return;
    shown = { from, to };
    const fragment = document.createDocumentFragment();
    for (const [offset, row] of sorted.slice(from, to).entries()) {
      const i = from + offset;
      const line = element("div", { className: "grid-row", role: "row", "aria-rowindex": i + 2 });
      line.style.top = `${i * ROW_PX}px`;
      for (const [at, column] of columns.entries()) {
        const value = row[at] ?? null;
        const cell = document.createElement("span");
        cell.setAttribute("role", "cell");
        if (column.isNumeric) cell.className = "number";
        if (value === null) cell.className = "null";
        cell.textContent = value === null ? "NULL" : text(value);
        line.append(cell);
      }
      fragment.append(line);
    }
    body.replaceChildren(fragment);
  };
  const drawHead = () => {
    head.replaceChildren(
      ...columns.map(({ name, isNumeric: isRight }, at) => {
        const isSorted = sort.column === at;
        const mark = isSorted ? (sort.isDescending ? " ↓" : " ↑") : "";
        const button = element("button", { type: "button", title: `Sort by ${name}` }, name + mark);
        button.addEventListener("click", () => sortBy(at));
        return element(
          "span",
          {
            role: "columnheader",
            ...(isRight ? { className: "number" } : {}),
            ...(isSorted ? { "aria-sort": sort.isDescending ? "descending" : "ascending" } : {}),
          },
          button,
        );
      }),
    );
  };
  const apply = () => {
    const { column, isDescending } = sort;
    sorted =
      column < 0
        ? rows
        : rows.toSorted(
            (a, b) => compareValues(a[column] ?? null, b[column] ?? null) * (isDescending ? -1 : 1),
          );
    shown = { from: -1, to: -1 };
    drawHead();
    draw();
  };
  /** Ascending, descending, then as the query returned them. */
  const sortBy = (column: number) => {
    if (sort.column !== column) sort = { column, isDescending: false };
    else if (!sort.isDescending) sort = { column, isDescending: true };
    else sort = { column: -1, isDescending: false };
    apply();
  };
  container.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(draw).observe(container);

  return {
    show(result) {
      rows = result.rows;
      columns = result.columns.map((name, at) => ({ name, isNumeric: isNumeric(rows, at) }));
      const widths = columns.map(({ name }, at) => `${widthOf(name, rows, at)}px`);
      container.style.setProperty("--columns", widths.join(" "));
      container.setAttribute("aria-rowcount", String(rows.length + 1));
      container.setAttribute("aria-label", `Result, ${rows.length} rows`);
      body.style.height = `${rows.length * ROW_PX}px`;
      container.scrollTop = 0;
      sort = { column: -1, isDescending: false };
      apply();
    },
  };
}
