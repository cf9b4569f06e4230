import { relative, sep } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Folders with files that take ten seconds or more, longest first: a slow file that starts last would run alone. */
const slowFolders = "proof project scenario dashboard clients daemon share crash export sync cli".split(" ");

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const others = await super.sort(files);
    const rank = ({ moduleId, project }: TestSpecification) => {
      // Files that share a process come last, one after another: any other file in between would end the process.
      if (project.config.isolate) return -1;
      const [, folder = ""] = relative(this.ctx.config.root, moduleId).split(sep);
      const index = slowFolders.indexOf(folder);
      return index < 0 ? slowFolders.length : index;
    };
    return others.sort((a, b) => rank(a) - rank(b));
  }
}
