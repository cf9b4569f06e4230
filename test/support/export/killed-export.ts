import { exportIn } from "./read-export.ts";

// Exports the folder's warehouse and dies, as by kill -9, when it has reached a step for the nth time.
const [folder = "", fatal = "", nth = "1", to] = process.argv.slice(2);
let left = Number(nth);
await exportIn(folder, {
  ...(to === undefined ? {} : { to, env: process.env }),
  onStep(step) {
    if (step === fatal && --left === 0) process.kill(process.pid, "SIGKILL");
  },
});
