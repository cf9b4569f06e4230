import { BaseSequencer, type TestSpecification } from "vitest/node";

/** A mutant dies with the first failed test: try the quick files before the slow ones. */
export class FastestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const duration = (file: TestSpecification) =>
      this.ctx.cache.getTestSpecificationResult(file)?.duration ?? 0;
    return files.toSorted((a, b) => duration(a) - duration(b));
  }
}
