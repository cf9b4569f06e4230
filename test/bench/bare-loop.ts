import Database from "better-sqlite3";

export interface Round {
  readonly rowsASecond: number;
}

/** What the figures are held against: parse each page, insert its rows 50 at a time, commit; no network, no proof. */
export function bareLoop(path: string, bodies: readonly Uint8Array[]): Round {
  const database = new Database(path);
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = FULL");
  database.exec(
    "CREATE TABLE t (series INTEGER, ts INTEGER, price REAL, volume REAL, PRIMARY KEY (series, ts)) STRICT, WITHOUT ROWID",
  );
  const many = database.prepare(
    `INSERT OR IGNORE INTO t VALUES ${Array(50).fill("(?, ?, ?, ?)").join(", ")}`,
  );
  const one = database.prepare("INSERT OR IGNORE INTO t VALUES (?, ?, ?, ?)");
  const keys = new Map<string, number>();
  let rows = 0;
  const begun = performance.now();
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
        many.run(values);
        values = [];
      }
    }
    for (let i = 0; i < values.length; i += 4) one.run(values.slice(i, i + 4));
    database.exec("COMMIT");
    rows += content.length;
  }
  const seconds = (performance.now() - begun) / 1000;
  database.close();
  return { rowsASecond: rows / seconds };
}
