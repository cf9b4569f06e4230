import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { pagePath } from "../model/answers/page-address.ts";
import type { HttpResponse } from "../runtime/http-server.ts";
import { pagesFolder } from "../runtime/package-files.ts";
import { type RequestHandler, textResponse } from "./dashboard-server.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml; charset=utf-8",
};

/** The pages about one thing, which their path names, and the name in the query of an earlier version's address. */
const namedPages = {
  assets: () => null,
  bars: (query: URLSearchParams) =>
    query.has("id")
      ? `${query.get("type") ?? ""}:${query.get("id")}`
      : (query.get("name") ?? query.get("series")),
  exchanges: (query: URLSearchParams) => query.get("pair"),
  derivatives: (query: URLSearchParams) => query.get("asset"),
};
const EARLIER_PARAMS = ["type", "id", "name", "series", "pair", "asset"];

/** Routes for the bundled pages. They are read once: the path of a request never becomes a file path. */
export function createFileRoutes(): [string, RequestHandler][] {
  return listFiles().flatMap((file): [string, RequestHandler][] => {
    const type = TYPES[extname(file)];
    if (!type) return [];
    const body = readFileSync(join(pagesFolder, file));
    const digest = createHash("sha256").update(body).digest("base64url");
    const page: HttpResponse = { type, body, etag: `W/"${digest}"` };
    const path = `/${file.replace(/\.html$/, "")}`;
    const name = path.slice(1);
    // An earlier version had the ledger at `/`, with the filter in the query.
    if (name === "market")
      return [
        ["/", (query) => (query.has("problems") || query.has("name") ? redirectTo("/sync", query) : page)],
        [path, () => page],
      ];
    if (!isNamedPage(name)) return [[path, () => page]];
    return [
      // The list of all assets is the market.
      [path, (query) => redirect(name, query) ?? (name === "assets" ? redirectTo("/", query) : page)],
      [`${path}/*`, () => page],
    ];
  });
}

function isNamedPage(page: string): page is keyof typeof namedPages {
  return Object.hasOwn(namedPages, page);
}

/** `/bars?type=GWA&id=…&width=1h` → `/bars/GWA:…?width=1h`; undefined if the query names nothing. */
function redirect(page: keyof typeof namedPages, query: URLSearchParams): HttpResponse | undefined {
  const name = namedPages[page](query);
  if (!name) return undefined;
  for (const param of EARLIER_PARAMS) query.delete(param);
  return redirectTo(pagePath(page, name), query);
}

function redirectTo(path: string, query: URLSearchParams): HttpResponse {
  const location = `${path}${query.size > 0 ? `?${query}` : ""}`;
  return { ...textResponse(302, location), headers: { location } };
}

function listFiles(): string[] {
  try {
    return readdirSync(pagesFolder).sort();
  } catch (cause) {
    throw new Error("the pages of the dashboard are not built: run `npm run build`", { cause });
  }
}
