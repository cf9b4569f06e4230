import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { pagesFolder } from "../runtime/package-files.ts";
import type { PageResponse, RequestHandler } from "./http-server.ts";

const TYPES: Readonly<Record<string, PageResponse["type"]>> = {
  ".html": "text/html",
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
};

/** Routes for the bundled pages. They are read once: the path of a request never becomes a file path. */
export function createFileRoutes(): [string, RequestHandler][] {
  return listFiles().flatMap((file): [string, RequestHandler][] => {
    const type = TYPES[extname(file)];
    if (!type) return [];
    const body = readFileSync(join(pagesFolder, file));
    const digest = createHash("sha256").update(body).digest("base64url");
    const page: PageResponse = { type, body, gzipped: gzipSync(body), etag: `W/"${digest}"` };
    const path = file === "overview.html" ? "/" : `/${file.replace(/\.html$/, "")}`;
    return [[path, () => page]];
  });
}

function listFiles(): string[] {
  try {
    return readdirSync(pagesFolder).sort();
  } catch (cause) {
    throw new Error("the pages of the dashboard are not built: run `npm run build`", { cause });
  }
}
