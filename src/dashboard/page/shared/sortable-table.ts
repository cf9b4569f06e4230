// The table of a page that can be searched, sorted by its heads, and that shows more rows on request.

import { byId, element, setRows, setText } from "./page-base.ts";
import { count } from "./text-format.ts";

export interface SortableColumn<Row> {
  readonly label: string;
  /** What an address calls it. */
  readonly key?: string;
  readonly className?: string;
  /** What the head sorts by; a column without it is only told. */
  readonly value?: (row: Row) => string | number | null;
  /** Names and ranks begin with the first, figures with the largest. */
  readonly isFirstAscending?: boolean;
}

interface SortableTableOptions<Row> {
  readonly id: string;
  readonly columns: readonly SortableColumn<Row>[];
  /** The key of a column, with a minus if the largest is first. */
  readonly sortedBy: string;
  readonly onSort: () => void;
  readonly rowsPerStep: number;
  readonly searchedText: (row: Row) => string;
  readonly rowOf: (row: Row) => HTMLTableRowElement;
  /** Rows that stay below the others in every order. */
  readonly isLast?: (row: Row) => boolean;
}

export interface SortableTable<Row> {
  show(rows: readonly Row[]): void;
  /** Draws again after the text of the search has changed, from the first step on. */
  search(): void;
  /** How it is sorted, for an address; empty: as usual. */
  sort(): string;
  /** Follows an address. */
  sortBy(sort: string | null): void;
}

/** The page also has `#search`, `#no-match` and `#more`. */
export function createSortableTable<Row>(options: SortableTableOptions<Row>): SortableTable<Row> {
  const { id, columns, sortedBy, onSort, rowsPerStep, searchedText, rowOf, isLast = () => false } = options;
  const searchInput = byId("search", HTMLInputElement);
  let rows: readonly Row[] = [];
  let shown = rowsPerStep;
  let sorted: SortableColumn<Row> | undefined;
  let isAscending = false;
  const sortBy = (sort: string) => {
    const column = columns.find(({ key }) => key !== undefined && key === sort.replace("-", ""));
    if (!column) return sortBy(sortedBy);
    sorted = column;
    isAscending = !sort.startsWith("-");
  };
  sortBy(new URLSearchParams(location.search).get("sort") ?? sortedBy);

  // The heads stay the same elements, so that the keyboard's focus does.
  const heads = columns.map((column) => {
    const { label, className, value } = column;
    const button = element("button", { type: "button" }, label);
    button.addEventListener("click", () => {
      isAscending = sorted === column ? !isAscending : (column.isFirstAscending ?? false);
      sorted = column;
      draw();
      onSort();
    });
    const head = element("th", { scope: "col", className }, value ? button : label);
    return { column, head, button };
  });
  byId(id, HTMLTableElement).tHead?.rows[0]?.replaceChildren(...heads.map(({ head }) => head));

  function compare(a: Row, b: Row): number {
    if (isLast(a) !== isLast(b)) return Number(isLast(a)) - Number(isLast(b));
    const [first, second] = [sorted?.value?.(a) ?? null, sorted?.value?.(b) ?? null];
    if (first === null || second === null) return Number(first === null) - Number(second === null);
    return (first < second ? -1 : first > second ? 1 : 0) * (isAscending ? 1 : -1);
  }

  function draw(): void {
    for (const { column, head, button } of heads) {
      button.textContent = column.label + (column !== sorted ? "" : isAscending ? " ↑" : " ↓");
      if (column === sorted) head.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    const text = searchInput.value.trim().toLowerCase();
    const found = rows.filter((row) => searchedText(row).toLowerCase().includes(text)).toSorted(compare);
    setRows(id, found.slice(0, shown).map(rowOf));
    byId("no-match").hidden = found.length > 0 || rows.length === 0;
    byId("more").hidden = found.length <= shown;
    setText("more", `Show more (${count(found.length - shown)})`);
  }

  byId("more").addEventListener("click", () => {
    shown += rowsPerStep;
    draw();
  });
  return {
    show(given) {
      rows = given;
      draw();
    },
    search() {
      shown = rowsPerStep;
      draw();
    },
    sort() {
      const sort = `${isAscending ? "" : "-"}${sorted?.key}`;
      return sort === sortedBy ? "" : sort;
    },
    sortBy(sort) {
      sortBy(sort ?? sortedBy);
      draw();
    },
  };
}
