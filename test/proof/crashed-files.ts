import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";

/** The files of a warehouse at one moment of a run. */
export interface CrashedFiles {
  /** Puts them in the place of those that the run has left, as if it had been killed at that moment. */
  restore(): void;
}

const fileSuffixes = ["", "-wal", "-shm", ".end"];

/** Call it between two operations of the ingest: then no commit is half done. */
export function captureFiles(path: string): CrashedFiles {
  const contents = ["", "-wal"].flatMap((suffix) =>
    existsSync(path + suffix) ? [{ file: path + suffix, bytes: readFileSync(path + suffix) }] : [],
  );
  return {
    restore() {
      for (const suffix of fileSuffixes) rmSync(path + suffix, { force: true });
      for (const { file, bytes } of contents) writeFileSync(file, bytes);
    },
  };
}
