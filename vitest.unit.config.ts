import { configure } from "./vitest.config.ts";

/** `npm run test:unit`: the inner loop, without the tests that start processes or a whole sync. */
export default configure({ isUnit: true });
