import {
  Column,
  columnFromArray,
  type DataType,
  float64,
  type Table,
  TimeUnit,
  tableFromColumns,
  tableToIPC,
  timestamp,
  uint8,
} from "@uwdata/flechette";
import type { BarArrays, TickArrays } from "./rows.ts";

/**
 * The columns of one series as an Arrow IPC stream. `ts` is a
 * timestamp in UTC; the schema's metadata has index_type, index_id and name. A column that was not requested is left out.
 */
export function toArrow(arrays: TickArrays | BarArrays): Uint8Array {
  const { index_type, index_id, name, length } = arrays;
  const columns = Object.entries(arrays).flatMap(([column, values]): [string, Column<unknown>][] => {
    const isRead = ArrayBuffer.isView(values) && (values as Float64Array).length === length;
    return isRead ? [[column, toColumn(values as Float64Array | BigInt64Array | Uint8Array)]] : [];
  });
  const table: Table = tableFromColumns(columns);
  table.schema.metadata = new Map(Object.entries({ index_type, index_id, name }));
  return tableToIPC(table, { format: "stream" }) as Uint8Array;
}

/** The array itself is the buffer of the column. */
function toColumn(values: Float64Array | BigInt64Array | Uint8Array): Column<unknown> {
  const type: DataType =
    values instanceof BigInt64Array
      ? timestamp(TimeUnit.MICROSECOND, "UTC")
      : values instanceof Uint8Array
        ? uint8()
        : float64();
  return new Column(values.length === 0 ? [] : [...columnFromArray(values).data], type);
}
