import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** The anchors of a page, as GitHub makes them of its headings. */
function anchorsOf(text: string): Set<string> {
  const seen = new Map<string, number>();
  const headings = [...text.replaceAll(/^ *```.*?^ *```$/gms, "").matchAll(/^#{1,6} (.+)$/gm)];
  return new Set(
    headings.map(([, heading = ""]) => {
      const anchor = heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
        .replaceAll(" ", "-");
      const count = seen.get(anchor) ?? 0;
      seen.set(anchor, count + 1);
      return count === 0 ? anchor : `${anchor}-${count}`;
    }),
  );
}

/** The links of the pages to files and headings that do not exist below `root`. Addresses of the web are not followed. */
export function findBrokenLinks(root: string, pages: readonly string[]): string[] {
  return pages.flatMap((page) => {
    const text = readFileSync(join(root, page), "utf8");
    const links = [...text.replaceAll(/^ *```.*?^ *```$/gms, "").matchAll(/\]\(([^)\s]+)\)/g)].map(
      ([, link = ""]) => link,
    );
    const isBroken = (link: string) => {
      if (/^[a-z]+:/.test(link)) return false;
      const [path = "", anchor] = link.split("#");
      const file = path === "" ? page : normalize(join(dirname(page), path));
      if (file.startsWith("..") || !existsSync(join(root, file))) return true;
      return anchor !== undefined && !anchorsOf(readFileSync(join(root, file), "utf8")).has(anchor);
    };
    return links.filter(isBroken).map((link) => `${page}: ${link}`);
  });
}
