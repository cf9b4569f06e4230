import { writeSync } from "node:fs";
import { truncateWal } from "../../src/warehouse/sqlite/wal.ts";
import { commitPages, openTestWriter } from "./workload.ts";

// This process is killed in the middle of its work. It reports through a pipe what is on disk.
const [, , task, path = ""] = process.argv;
const report = (line: string) => writeSync(1, `${line}\n`);

const warehouse = openTestWriter(path);
report("open");
if (task === "commit") commitPages(warehouse, (page) => report(`page ${page}`));
if (task === "shorten")
  commitPages(warehouse, (page) => {
    report(`page ${page}`);
    warehouse.checkpointWal(1);
  });
if (task === "checkpoint") report(`truncated ${truncateWal(warehouse.connection).isTruncated}`);
if (task === "endless") for (;;) commitPages(warehouse, (page) => report(`page ${page}`));
warehouse.close();
