import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take ten seconds and more, longest first. Begun last, one of them would keep a single core busy while the others wait. */
const long = [
  "test/proof/",
  "test/scenario/",
  "test/crash/",
  "test/daemon/",
  "test/cli/commands/backfill.test.ts",
  "test/project/package.test.ts",
  "test/export/incremental.test.ts",
  "test/sync/",
  "test/ingest/thread/ingest-thread.test.ts",
  "test/service/pagination/full-window.test.ts",
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const others = await super.sort(files);
    const rank = ({ moduleId }: TestSpecification) => {
      const path = relative(this.ctx.config.root, moduleId);
      const at = long.findIndex((start) => path.startsWith(start));
      return at < 0 ? long.length : at;
    };
    return others.sort((a, b) => rank(a) - rank(b));
  }
}
