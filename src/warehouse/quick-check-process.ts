import { openReader } from "./connection.ts";

// A process of its own: SQLite cannot be interrupted here, a process can.
const connection = openReader(process.argv[2] ?? "");
process.stdout.write(String(connection.database.pragma("quick_check(1)", { simple: true })));
connection.close();
