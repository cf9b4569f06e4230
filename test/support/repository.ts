import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** The folder of the project. */
export const root = resolve(import.meta.dirname, "../..");

/** The text of one of its files. */
export const readProjectFile = (file: string): string => readFileSync(join(root, file), "utf8");
