import { connectReader } from "./connection.ts";

// A process of its own: SQLite cannot be interrupted here, a process can.
const connection = connectReader(process.argv[2] ?? "");
process.stdout.write(String(connection.database.pragma("quick_check(1)", { simple: true })));
connection.close();
