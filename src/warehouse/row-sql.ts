import type { RowTable } from "./row-tables.ts";

/** Many rows a statement is 1.5 to 1.8 times as fast as one. */
export const ROWS_A_STATEMENT = 50;

interface RowSql {
  /** As with `insertLean`, a failure leaves it half done. */
  readonly insertMany: string;
  readonly insertOne: string;
  /**
   * Many rows in the table's lean form; the key is the parameter `@key`. A failure leaves the statement half done, which
   * the rollback of the whole transaction makes good: SQLite need not keep copies of the pages for undoing it alone.
   */
  readonly insertLean: string | undefined;
  readonly replaceOne: string;
  /** One row by key and moment. */
  readonly stored: string;
  /** Whether any row stands from one moment to another, both included. */
  readonly occupied: string;
}

/** Written once a table: the long text of 50 rows is the key under which its prepared statement is found. */
const written = new Map<string, RowSql>();

export function rowSql<Row>({ table, keyColumn, momentColumn, columns, lean }: RowTable<Row>): RowSql {
  let sql = written.get(table);
  if (!sql) {
    const names = [keyColumn, momentColumn, ...columns];
    const row = `(${names.map(() => "?").join(", ")})`;
    const into = `INTO ${table} (${names.join(", ")}) VALUES`;
    sql = {
      insertMany: `INSERT OR FAIL ${into} ${Array(ROWS_A_STATEMENT).fill(row).join(", ")}`,
      insertLean:
        lean &&
        `INSERT OR FAIL INTO ${table} (${[keyColumn, momentColumn, ...lean.columns, "source"].join(", ")}) VALUES ${Array(
          ROWS_A_STATEMENT,
        )
          .fill(`(@key, ?, ${lean.columns.map(() => "?").join(", ")}, 0)`)
          .join(", ")}`,
      insertOne: `INSERT ${into} ${row}`,
      replaceOne: `REPLACE ${into} ${row}`,
      stored: `SELECT ${columns.join(", ")} FROM ${table} WHERE ${keyColumn} = ? AND ${momentColumn} = ?`,
      occupied: `SELECT 1 FROM ${table} WHERE ${keyColumn} = ? AND ${momentColumn} BETWEEN ? AND ? LIMIT 1`,
    };
    written.set(table, sql);
  }
  return sql;
}
