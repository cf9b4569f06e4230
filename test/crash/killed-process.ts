import { writeSync } from "node:fs";
import { truncateWal } from "../../src/warehouse/sqlite/wal.ts";
import { open, walk } from "./workload.ts";

// A process that is killed in the middle of its work. It tells what is on disk through a pipe, write by write.
const [, , task, path = ""] = process.argv;
const say = (line: string) => writeSync(1, `${line}\n`);

const warehouse = open(path);
say("open");
if (task === "commit") walk(warehouse, (page) => say(`page ${page}`));
if (task === "shorten")
  walk(warehouse, (page) => {
    say(`page ${page}`);
    warehouse.shortenWal(1);
  });
if (task === "checkpoint") say(`truncated ${truncateWal(warehouse.connection).isTruncated}`);
if (task === "for ever") for (;;) walk(warehouse, (page) => say(`page ${page}`));
warehouse.close();
