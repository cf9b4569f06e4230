import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ParquetWriter, type SourceBlock } from "../../src/export/parquet-writer.ts";
import { quoteText } from "../../src/model/sql-text.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Several groups of rows, in blocks that end neither with a chunk nor with a group. */
const BLOCKS = 13;
const ROWS_PER_BLOCK = 5_001;

const columns = [
  { name: "block", kind: "number" },
  { name: "i", kind: "number" },
  { name: "label", kind: "text" },
] as const;

/** Numbers its rows, and fails before the block `failsAt`. */
function* blocks(failsAt = BLOCKS): Generator<SourceBlock> {
  for (let at = 0; at < BLOCKS; at++) {
    if (at === failsAt) throw new Error(`block ${at} cannot be read`);
    const rows = Array.from({ length: ROWS_PER_BLOCK }, (_, i) => {
      const n = at * ROWS_PER_BLOCK + i;
      return [n, n % 1000 === 0 ? String(n) : null];
    });
    yield { prefix: [at], rows };
  }
}

describe("a Parquet writer", () => {
  let folder: string;
  let writer: ParquetWriter;
  const write = (name: string, source: Generator<SourceBlock>) =>
    writer.write(join(folder, name), { columns, blocks: source }, "SELECT * FROM source_rows()");

  beforeAll(async () => {
    folder = temporaryFolder(afterAll);
    writer = await ParquetWriter.open(folder);
  });
  afterAll(() => writer.close());

  it("writes every row once and in order", async () => {
    await write("rows.parquet", blocks());
    const rows = await writer.rows(
      `SELECT count(*), count(DISTINCT i), bool_and(i = file_row_number), bool_and(block = floor(i / ${ROWS_PER_BLOCK})),
        count(label), bool_and(label = CAST(CAST(i AS INTEGER) AS VARCHAR))
      FROM read_parquet(${quoteText(join(folder, "rows.parquet"))}, file_row_number = true)`,
    );
    const all = String(BLOCKS * ROWS_PER_BLOCK);
    expect(rows).toEqual([[all, all, true, true, String(Math.ceil(Number(all) / 1000)), true]]);
  });

  it.each([0, BLOCKS - 1])("fails if block %i cannot be read, and writes the next file", async (at) => {
    await expect(write("failed.parquet", blocks(at))).rejects.toThrow(`block ${at} cannot be read`);
    await write("next.parquet", blocks());
    expect(
      await writer.rows(`SELECT count(*) FROM read_parquet(${quoteText(join(folder, "next.parquet"))})`),
    ).toEqual([[String(BLOCKS * ROWS_PER_BLOCK)]]);
  });
});
