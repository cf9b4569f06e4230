import { writeSync } from "node:fs";
import { truncateWal } from "../../src/warehouse/sqlite/wal.ts";
import { commitPages, moveParts, openTestWriter } from "./workload.ts";

// The test kills this process in the middle of its work. It reports through a pipe which pages it has committed.
const [, , task, path = ""] = process.argv;
const report = (line: string) => writeSync(1, `${line}\n`);

const warehouse = openTestWriter(path);
report("open");
if (task === "commit") commitPages(warehouse, (page) => report(`page ${page}`));
if (task === "commit-together") commitPages(warehouse, (page) => report(`page ${page}`), 3);
if (task === "commit-and-truncate")
  commitPages(warehouse, (page) => {
    report(`page ${page}`);
    warehouse.checkpointWal(1);
  });
if (task === "checkpoint") report(`truncated ${truncateWal(warehouse.connection).isTruncated}`);
if (task === "move") for (let move = 0; move < 2; move++) moveParts(warehouse);
if (task === "endless") for (;;) commitPages(warehouse, (page) => report(`page ${page}`));
warehouse.close();
