import { configDefaults, mergeConfig } from "vitest/config";
import { findProcessTests } from "./test/support/process-tests.ts";
import config from "./vitest.config.ts";

/** `npm run test:unit`: the inner loop, without the tests that start other processes. */
export default mergeConfig(config, {
  test: { exclude: [...configDefaults.exclude, ...findProcessTests(import.meta.dirname)] },
});
