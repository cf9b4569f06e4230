import { configDefaults, mergeConfig } from "vitest/config";
import { findSystemTests } from "./test/support/system-tests.ts";
import config from "./vitest.config.ts";

/** `npm run test:unit`: the inner loop, without the tests that start processes or a whole sync. */
export default mergeConfig(config, {
  test: { exclude: [...configDefaults.exclude, ...findSystemTests(import.meta.dirname)] },
});
