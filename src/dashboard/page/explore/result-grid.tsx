// A table of many rows: only those in view are in the document.

import { useMemo, useRef, useState } from "preact/hooks";
import type { QueryAnswer, ScreenValue } from "../../../model/answers/query.ts";
import { compareValues, sortNames, useResized } from "../shared/page-base.ts";

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

/** Ascending, descending, then as the query returned them. */
type Sort = { readonly column: number; readonly sign: 1 | -1 };
const UNSORTED: Sort = { column: -1, sign: 1 };

function nextSort(sort: Sort, column: number): Sort {
  if (sort.column !== column) return { column, sign: 1 };
  return sort.sign < 0 ? UNSORTED : { column, sign: -1 };
}

const sortRows = (rows: readonly Row[], { column, sign }: Sort) =>
  column < 0 ? rows : rows.toSorted((a, b) => compareValues(a[column] ?? null, b[column] ?? null, sign));

/** A new answer is a new grid: its `key` changes. */
export function ResultGrid({ columns: names, rows }: Pick<QueryAnswer, "columns" | "rows">) {
  const box = useRef<HTMLDivElement>(null);
  const [sort, setSort] = useState(UNSORTED);
  const [shown, setShown] = useState({ from: 0, to: 0 });
  const columns = useMemo(
    () => names.map((name, at) => ({ name, isNumeric: isNumeric(rows, at), px: widthOf(name, rows, at) })),
    [names, rows],
  );
  const sorted = useMemo(() => sortRows(rows, sort), [rows, sort]);
  const measure = () => {
    const { scrollTop = 0, clientHeight = 0 } = box.current ?? {};
    const from = Math.max(0, Math.floor(scrollTop / ROW_PX) - SPARE_ROWS);
    const to = Math.min(rows.length, Math.ceil((scrollTop + clientHeight) / ROW_PX) + SPARE_ROWS);
    setShown((last) => (last.from === from && last.to === to ? last : { from, to }));
  };
  useResized(box, measure);
  const right = "ellipsis number";
  return (
    <div
      {...{ id: "grid", tabIndex: 0, ref: box, onScroll: measure }}
      role="table"
      aria-rowcount={rows.length + 1}
      aria-label={`Result, ${rows.length} rows`}
      style={{ "--columns": columns.map(({ px }) => `${px}px`).join(" ") }}
    >
      <div role="row">
        {columns.map(({ name, isNumeric: isRight }, at) => (
          <span
            key={`${at} ${name}`}
            role="columnheader"
            class={isRight ? right : "ellipsis"}
            aria-sort={sort.column === at ? sortNames[sort.sign].name : undefined}
          >
            <button type="button" title={`Sort by ${name}`} onClick={() => setSort(nextSort(sort, at))}>
              {name + (sort.column === at ? sortNames[sort.sign].arrow : "")}
            </button>
          </span>
        ))}
      </div>
      <div role="rowgroup" style={{ height: `${rows.length * ROW_PX}px` }}>
        {sorted.slice(shown.from, shown.to).map((row, offset) => {
          const at = shown.from + offset;
          return (
            <div key={at} role="row" aria-rowindex={at + 2} style={{ top: `${at * ROW_PX}px` }}>
              {columns.map((column, place) => {
                const value = row[place] ?? null;
                const isRight = column.isNumeric && value !== null;
                return (
                  <span key={`${place} ${column.name}`} role="cell" class={isRight ? right : "ellipsis"}>
                    {value === null ? <span class="faint">NULL</span> : text(value)}
                  </span>
                );
              })}
            </div>
          );
        })}
      </div>
    </div>
  );
}
