// The rows of a result as a table.

import { useMemo, useState } from "preact/hooks";
import type { QueryAnswer } from "../../../model/answers/query.ts";
import { type DataColumn, DataTable } from "../shared/data-table.tsx";

const STEP = 500;
const SAMPLE_ROWS = 300;

type Row = QueryAnswer["rows"][number];
interface GridRow {
  readonly at: number;
  readonly values: Row;
}

/** A column of numbers is aligned to the right. */
export function isNumeric(rows: readonly Row[], column: number): boolean {
  const known = rows.slice(0, SAMPLE_ROWS).filter((row) => row[column] !== null);
  return known.length > 0 && known.every((row) => typeof row[column] === "number");
}

/** A new answer is a new grid: its `key` changes. */
export function ResultGrid({ columns: names, rows }: Pick<QueryAnswer, "columns" | "rows">) {
  const [sort, setSort] = useState("");
  // Whoever types the next statement does not wait for the rows of this one.
  return useMemo(() => {
    const columns = names.map(
      (label, at): DataColumn<GridRow> => ({
        ...{ label, key: String(at), isAscending: true },
        className: isNumeric(rows, at) ? "number ellipsis" : "ellipsis",
        value: ({ values }) => values[at],
        cell: ({ values }, text) => (values[at] === null ? <i class="faint">NULL</i> : text),
      }),
    );
    return (
      <div class="grid">
        <DataTable
          {...{ id: "grid", label: `Result, ${rows.length} rows`, columns, step: STEP }}
          rows={rows.map((values, at) => ({ at, values }))}
          attributes={({ at }) => ({ key: String(at) })}
          // Ascending, descending, then as the query returned them.
          sort={{ by: sort, usual: "", onSort: (by) => setSort(sort === `-${by}` ? "" : by) }}
        />
      </div>
    );
  }, [names, rows, sort]);
}
