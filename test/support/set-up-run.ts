import { seed } from "./seed.ts";

export function setup(): void {
  process.stdout.write(`seed ${seed} (set MDS_SEED to repeat a run)\n`);
}
