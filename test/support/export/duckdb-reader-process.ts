import { DuckDBInstance } from "@duckdb/node-api";

// A quant at work in a process of its own: holds a catalogue open and answers each query that it is sent.
const instance = await DuckDBInstance.create(process.argv[2], { access_mode: "READ_ONLY", threads: "1" });
const connection = await instance.connect();
process.on("message", async (sql: string) => {
  try {
    process.send?.((await connection.runAndReadAll(sql)).getRowsJson());
  } catch (error) {
    process.send?.(String(error));
  }
});
process.send?.("ready");
