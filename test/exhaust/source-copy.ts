import { cpSync, mkdtempDisposableSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** Copies what the exhaustive check runs, with these files changed, into a folder that removes itself. */
export function copySources(files: readonly { readonly name: string; readonly content: string }[]) {
  const folder = mkdtempDisposableSync(join(tmpdir(), "mds-sync-mutants-"));
  for (const name of ["src", "test/exhaust", "test/support/rule", "package.json"])
    cpSync(name, join(folder.path, name), { recursive: true });
  symlinkSync(resolve("node_modules"), join(folder.path, "node_modules"));
  for (const { name, content } of files) writeFileSync(join(folder.path, name), content);
  return folder;
}
