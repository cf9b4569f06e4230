import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import type { HttpResponse } from "../runtime/http-server.ts";
import { pagesFolder } from "../runtime/package-files.ts";
import { type RequestHandler, textResponse } from "./dashboard-server.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml; charset=utf-8",
};

/** The pages about one thing, which their path names. */
const namedPages = ["/assets", "/bars", "/exchanges", "/derivatives"];

/** The list of all assets is the market. */
const toMarket: HttpResponse = { ...textResponse(302, "/"), headers: { location: "/" } };

/** Routes for the bundled pages. They are read once: the path of a request never becomes a file path. */
export function createFileRoutes(): [string, RequestHandler][] {
  return listFiles().flatMap((file): [string, RequestHandler][] => {
    const type = TYPES[extname(file)];
    if (!type) return [];
    const body = readFileSync(join(pagesFolder, file));
    const digest = createHash("sha256").update(body).digest("base64url");
    const page: HttpResponse = { type, body, etag: `W/"${digest}"` };
    const path = `/${file.replace(/\.html$/, "")}`;
    const paths = [path, ...(path === "/market" ? ["/"] : namedPages.includes(path) ? [`${path}/*`] : [])];
    return paths.map((one) => [one, () => (one === "/assets" ? toMarket : page)]);
  });
}

function listFiles(): string[] {
  try {
    return readdirSync(pagesFolder).sort();
  } catch (cause) {
    throw new Error("the pages of the dashboard are not built: run `npm run build`", { cause });
  }
}
