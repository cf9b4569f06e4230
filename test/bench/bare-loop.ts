import Database from "better-sqlite3";

/** The baseline of the benchmarks, in rows a second: parse each page, insert 50 rows at a time, commit. No network, no coverage. */
export function runBareLoop(path: string, bodies: readonly Uint8Array[]): number {
  const database = new Database(path);
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = FULL");
  database.exec(
    "CREATE TABLE t (series INTEGER, ts INTEGER, price REAL, volume REAL, PRIMARY KEY (series, ts)) STRICT, WITHOUT ROWID",
  );
  const insertMany = database.prepare(
    `INSERT OR IGNORE INTO t VALUES ${Array(50).fill("(?, ?, ?, ?)").join(", ")}`,
  );
  const insertOne = database.prepare("INSERT OR IGNORE INTO t VALUES (?, ?, ?, ?)");
  const keys = new Map<string, number>();
  let rows = 0;
  const startedAt = performance.now();
  for (const body of bodies) {
    const { content } = JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString());
    database.exec("BEGIN IMMEDIATE");
    let values: number[] = [];
    for (let i = content.length - 1; i >= 0; i--) {
      const { indexId, timestamp, price, volume } = content[i];
      const key = keys.get(indexId) ?? keys.size;
      keys.set(indexId, key);
      values.push(key, Date.parse(timestamp) * 1000, Number(price), Number(volume));
      if (values.length === 200) {
        insertMany.run(values);
        values = [];
      }
    }
    for (let i = 0; i < values.length; i += 4) insertOne.run(values.slice(i, i + 4));
    database.exec("COMMIT");
    rows += content.length;
  }
  const seconds = (performance.now() - startedAt) / 1000;
  database.close();
  return rows / seconds;
}
