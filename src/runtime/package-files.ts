import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A built module lies in dist/ itself, whichever folder of src/ it comes from. */
const isBuilt = import.meta.url.endsWith(".js");

/** The clone, or the installed package: the folder of package.json, `config` and the migrations. */
export const packageFolder = fileURLToPath(new URL(isBuilt ? ".." : "../..", import.meta.url));

/** The file that starts the program. */
export const programFile = join(packageFolder, isBuilt ? "dist/cli/main.js" : "src/cli/main.ts");

/** The pages of the dashboard, written by scripts/bundle-pages.ts. */
export const pagesFolder = join(packageFolder, isBuilt ? "dist/pages" : "src/dashboard/bundle");
