import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take ten seconds or more, longest first: a slow file that starts last would run alone. */
const slowFiles = [
  "test/proof/",
  "test/scenario/",
  "test/crash/",
  "test/daemon/",
  "test/share/",
  "test/serve/",
  "test/cli/commands/backfill.test.ts",
  "test/project/package.test.ts",
  "test/export/incremental.test.ts",
  "test/sync/",
  "test/ingest/thread/ingest-thread.test.ts",
  "test/service/pagination/full-window.test.ts",
];

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const others = await super.sort(files);
    const rank = ({ moduleId, project }: TestSpecification) => {
      const path = relative(this.ctx.config.root, moduleId);
      const index = slowFiles.findIndex((start) => path.startsWith(start));
      // Files that share a process come last, one after another: any other file in between would end the process.
      const first = project.config.isolate ? 0 : slowFiles.length + 1;
      return first + (index < 0 ? slowFiles.length : index);
    };
    return others.sort((a, b) => rank(a) - rank(b));
  }
}
