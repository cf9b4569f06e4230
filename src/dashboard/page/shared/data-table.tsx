// A table whose columns are declared: label, value, format, order and tone of a column are stated once.
//   const columns: DataColumn<Quote>[] = [{ label: "vs index", key: "deviation", field: "deviation_bps", format: points, tone: signOf }];
//   <DataTable id="quotes" label="Quotes" columns={columns} rows={quotes} attributes={…} sort={{ by, onSort }} />

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { compareValues, sortNames } from "./page-base.ts";
import { count } from "./text-format.ts";

export interface DataColumn<Row> {
  readonly label: string;
  /** What an address calls it; only a column with a key can be sorted by. */
  readonly key?: string;
  /** What has the value, unless `value` finds it. */
  readonly field?: keyof Row & string;
  /** What it is sorted by, and what `format` shows. */
  readonly value?: (row: Row) => string | number | null | undefined;
  /** Of a figure, which is on the right; without a value, a dash is shown. */
  readonly format?: (figure: number) => string;
  /** More than the text: without it the value is shown as it is. */
  readonly cell?: (row: Row, text: string) => ComponentChildren;
  /** A second line. */
  readonly note?: (row: Row) => string;
  readonly isHeading?: boolean;
  /** The colour of a figure, by its text: `signOf`. */
  readonly tone?: (text: string, row: Row) => string;
  readonly shade?: (row: Row, text: string) => string;
  /** Names and ranks begin with the first, figures with the largest. */
  readonly isAscending?: boolean;
  /** A phone has no room for it. */
  readonly isWide?: boolean;
  readonly className?: string;
}

export interface DataTableProps<Row> {
  readonly id: string;
  readonly label: string;
  readonly columns: readonly DataColumn<Row>[];
  readonly rows: readonly Row[];
  /** Of a row: its `key`, class and data. */
  readonly attributes?: (row: Row) => { readonly key: string; readonly [name: string]: string | undefined };
  /** `by`: the key of a column, with a minus if the largest is first; else the rows stay as they are. */
  readonly sort?: {
    readonly by: string;
    readonly onSort: (by: string) => void;
    /** Rows that stay below the others in every order. */
    readonly isLast?: (row: Row) => boolean;
  };
  readonly search?: { readonly text: string; readonly of: (row: Row) => string; readonly none: string };
  /** Shows so many rows, and as many more on request. */
  readonly step?: number;
  readonly empty?: string;
}

const classOf = <Row,>({ format, isWide, className }: DataColumn<Row>, tone = "") =>
  [format ? "number" : "", isWide ? "wide" : "", className, tone].filter(Boolean).join(" ") || undefined;

function valueIn<Row>({ field, value }: DataColumn<Row>, row: Row): string | number | null {
  const found = value ? value(row) : field && row[field];
  return typeof found === "string" || typeof found === "number" ? found : null;
}

export function textIn<Row>(column: DataColumn<Row>, row: Row): string {
  const value = valueIn(column, row);
  return value === null ? "–" : (column.format?.(Number(value)) ?? String(value));
}

function Cell<Row>({ column, row }: { column: DataColumn<Row>; row: Row }) {
  const text = textIn(column, row);
  const style = { backgroundColor: column.shade?.(row, text) };
  const own = { class: classOf(column, column.tone?.(text, row)), style };
  const note = column.note?.(row);
  const first = column.cell ? column.cell(row, text) : text;
  const shown = note ? [first, <br key="br" />, <span key="note" class="soft" children={note} />] : first;
  const [Tag, scope] = column.isHeading ? (["th", "row"] as const) : (["td"] as const);
  return <Tag {...{ ...own, scope, children: shown }} />;
}

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { id, label, columns, rows, attributes, sort, search } = props;
  const { empty, step = Number.POSITIVE_INFINITY } = props;
  const [shown, setShown] = useState(step);
  const searched = search?.text.trim().toLowerCase() ?? "";
  useEffect(() => setShown(step), [searched, step]);
  const nothing = (name: string, text: string) => <p class="soft empty" id={`no-${name}`} children={text} />;
  if (rows.length === 0 && empty !== undefined) return nothing(id, empty);
  const sorted = columns.find(({ key }) => key !== undefined && key === sort?.by.replace("-", ""));
  const sign = sort?.by.startsWith("-") ? -1 : 1;
  const found = search ? rows.filter((row) => search.of(row).toLowerCase().includes(searched)) : rows;
  const rankOf = (row: Row) => Number(sort?.isLast?.(row) ?? false);
  const order = (column: (typeof columns)[number]) => (a: Row, b: Row) =>
    rankOf(a) - rankOf(b) || compareValues(valueIn(column, a), valueIn(column, b), sign);
  const ordered = sorted ? found.toSorted(order(sorted)) : found;
  const head = (column: DataColumn<Row>) => {
    if (column.key === undefined) return column.label;
    const isFirstAscending = column === sorted ? sign < 0 : column.isAscending;
    const arrow = column === sorted ? sortNames[sign].arrow : "";
    return (
      <button type="button" onClick={() => sort?.onSort(`${isFirstAscending ? "" : "-"}${column.key}`)}>
        {`${column.label}${arrow}`}
      </button>
    );
  };
  return (
    <>
      {/* A table that is wider than a phone must scroll with the keyboard too. */}
      <div class="scroll" tabIndex={0} role="region" aria-label={`${label}, as a table`}>
        <table id={id}>
          <thead>
            <tr>
              {columns.map((column) => (
                <th
                  scope="col"
                  class={classOf(column)}
                  aria-sort={column === sorted ? sortNames[sign].name : undefined}
                >
                  {head(column)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {ordered.slice(0, shown).map((row, at) => {
              const { key = at, ...own } = attributes?.(row) ?? {};
              const cells = columns.map((column) => <Cell column={column} row={row} />);
              return <tr key={key} {...own} children={cells} />;
            })}
          </tbody>
        </table>
      </div>
      {search && found.length === 0 && nothing("match", search.none)}
      {found.length > shown && (
        <button type="button" class="more" id="more" onClick={() => setShown(shown + step)}>
          {`Show more (${count(found.length - shown)})`}
        </button>
      )}
    </>
  );
}
