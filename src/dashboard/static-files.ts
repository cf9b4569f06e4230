import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { PageResponse, RequestHandler } from "./http-server.ts";

const PAGE_FILES = {
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
  "/page-base.js": ["page-base.js", "text/javascript"],
  "/text-format.js": ["text-format.js", "text/javascript"],
  "/favicon.svg": ["favicon.svg", "image/svg+xml"],
} as const satisfies Record<string, readonly [string, PageResponse["type"]]>;

const CHART_LIBRARY = "lightweight-charts";

/** Routes for files on disk. The list is fixed: the path of a request never becomes a file path. */
export function createFileRoutes(): [string, RequestHandler][] {
  const files: [string, string, PageResponse["type"]][] = Object.entries(PAGE_FILES).map(
    ([path, [file, type]]) => [path, fileURLToPath(new URL(`./page/${file}`, import.meta.url)), type],
  );
  files.push(["/lightweight-charts.js", findChartLibrary(), "text/javascript"]);
  return files.map(([path, file, type]) => {
    const body = readFileSync(file);
    const digest = createHash("sha256").update(body).digest("base64url");
    const page: PageResponse = { type, body, gzipped: gzipSync(body), etag: `W/"${digest}"` };
    return [path, () => page];
  });
}

/** The standalone build, resolved like any package. */
function findChartLibrary(): string {
  const manifest = createRequire(import.meta.url).resolve(`${CHART_LIBRARY}/package.json`);
  return join(dirname(manifest), "dist", `${CHART_LIBRARY}.standalone.production.mjs`);
}
