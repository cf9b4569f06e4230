import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { offerPostgres } from "./run-postgres.ts";
import { seed } from "./seed.ts";
import { createTemplate, TEMPLATE_VARIABLE } from "./warehouse/empty-warehouse.ts";

/** Runs once, before all test files. Returns what to do after them. */
export async function setup(): Promise<() => Promise<void>> {
  process.stdout.write(`seed ${seed} (set MDS_SEED to repeat a run)\n`);
  const template = createTemplate();
  process.env[TEMPLATE_VARIABLE] = template;
  const stopPostgres = await offerPostgres();
  return async () => {
    await stopPostgres();
    rmSync(dirname(template), { recursive: true, force: true });
  };
}
