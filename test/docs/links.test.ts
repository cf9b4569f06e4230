import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readProjectFile as read, root } from "../support/repository.ts";
import { findBrokenLinks } from "./page-links.ts";

const { files, scripts } = JSON.parse(read("package.json")) as {
  files: string[];
  scripts: Record<string, string>;
};
const pages = ["README.md", ...files]
  .filter((file) => !file.startsWith("!") && file !== "dist")
  .flatMap((file) =>
    file.endsWith(".md")
      ? [file]
      : readdirSync(join(root, file), { recursive: true, encoding: "utf8" }).map((name) => join(file, name)),
  )
  .filter((file) => file.endsWith(".md") && !file.includes("node_modules"));

/** The changelog also tells of what has left. */
const presentPages = pages.filter((page) => page !== "CHANGELOG.md");

describe("the documents", () => {
  it("link only to files and headings that exist", () => {
    expect(pages.length).toBeGreaterThan(25);
    expect(findBrokenLinks(root, pages)).toEqual([]);
  });

  it("name only files and folders of the sources that exist", () => {
    const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" });
    const isPath = (path: string) => /^(src|test|config|docs|scripts|examples|clients)\//.test(path);
    const isMissing = (page: string, path: string) => {
      if (existsSync(join(root, path))) return false;
      // It names files by the ends of their paths.
      const isEnd = page === "ARCHITECTURE.md" && path.endsWith(".ts");
      return isPath(path) || (isEnd && !sources.some((file) => `/${file}`.endsWith(`/${path}`)));
    };
    const missing = presentPages.flatMap((page) =>
      [...read(page).matchAll(/`([\w./-]+)`/g)]
        .map(([, path = ""]) => path)
        .filter((path) => isMissing(page, path))
        .map((path) => `${page}: ${path}`),
    );
    expect(missing).toEqual([]);
  });

  it("name only npm scripts that exist", () => {
    const missing = presentPages.flatMap((page) =>
      [...read(page).matchAll(/npm run ([\w:]+)/g)]
        .map(([, script = ""]) => script)
        .filter((script) => !(script in scripts))
        .map((script) => `${page}: ${script}`),
    );
    expect(missing).toEqual([]);
  });
});

describe("docs/decisions", () => {
  const decisions = readdirSync(join(root, "docs/decisions")).filter((name) => name !== "README.md");

  it("has a page for every decision that the code names, and the code names every page", () => {
    const named = execFileSync("grep", ["-rhoE", "docs/decisions/[a-z-]+\\.md", "src", "--include=*.ts"], {
      cwd: root,
      encoding: "utf8",
    }).split("\n");
    const found = new Set(
      named.filter((line) => line !== "").map((line) => line.replace("docs/decisions/", "")),
    );
    expect([...found].sort()).toEqual(decisions.sort());
  });

  it("lists each of them", () => {
    const list = read("docs/decisions/README.md");
    expect(decisions.filter((name) => !list.includes(`](${name})`))).toEqual([]);
  });
});
