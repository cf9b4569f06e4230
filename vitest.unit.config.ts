import { configure } from "./vitest.config.ts";

/** Folders whose tests start the program, a whole sync or a server. */
const systemFolders = [
  "cli",
  "clients",
  "crash",
  "daemon",
  "docs",
  "export",
  "project",
  "proof",
  "scenario",
  "share",
  "sync",
];

/** `npm run test:unit`: the inner loop, without those folders, tests from outside, and files that need a process of their own. */
export default configure([
  `test/{${systemFolders}}/**`,
  "test/**/*.system.test.ts",
  "test/**/*.process.test.ts",
]);
