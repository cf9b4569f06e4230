import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Page, PageMaker } from "./http-server.ts";

const ours = {
  "/": ["dashboard.html", "text/html"],
  "/bars": ["bars.html", "text/html"],
  "/dashboard.css": ["dashboard.css", "text/css"],
  "/bars.css": ["bars.css", "text/css"],
  "/dashboard.js": ["dashboard.js", "text/javascript"],
  "/heat-map.js": ["heat-map.js", "text/javascript"],
  "/bars.js": ["bars.js", "text/javascript"],
  "/bar-chart.js": ["bar-chart.js", "text/javascript"],
  "/bar-slots.js": ["bar-slots.js", "text/javascript"],
  "/series-box.js": ["series-box.js", "text/javascript"],
  "/asking.js": ["asking.js", "text/javascript"],
  "/words.js": ["words.js", "text/javascript"],
  "/favicon.svg": ["favicon.svg", "image/svg+xml"],
} as const satisfies Record<string, readonly [string, Page["type"]]>;

const CHART_LIBRARY = "lightweight-charts";

/** What is served as it lies on disk. A fixed list: no path of a request ever becomes a path of a file. */
export function filePages(): [string, PageMaker][] {
  const files: [string, string, Page["type"]][] = Object.entries(ours).map(([path, [file, type]]) => [
    path,
    fileURLToPath(new URL(`./page/${file}`, import.meta.url)),
    type,
  ]);
  files.push(["/lightweight-charts.js", chartLibrary(), "text/javascript"]);
  return files.map(([path, file, type]) => {
    const body = readFileSync(file);
    const digest = createHash("sha256").update(body).digest("base64url");
    const page: Page = { type, body, gzipped: gzipSync(body), etag: `W/"${digest}"` };
    return [path, () => page];
  });
}

/** The build that needs nothing else, found where the package manager has put the package. */
function chartLibrary(): string {
  const manifest = createRequire(import.meta.url).resolve(`${CHART_LIBRARY}/package.json`);
  return join(dirname(manifest), "dist", `${CHART_LIBRARY}.standalone.production.mjs`);
}
