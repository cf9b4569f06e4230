import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { PASSWORD, SUPERUSER } from "../postgres-server.ts";
import { type ProgramProcess, startProgram } from "../program-process.ts";
import { temporaryFolder } from "../temporary-folder.ts";

/** Starts `mds-sync share`. `port`: of PostgreSQL, or of a proxy before it. */
export function startShare(
  warehouse: Pick<WarehouseWriter, "path">,
  port: number,
  database: string,
): ProgramProcess {
  const env = {
    MDS_SHARED_URL: `postgres://${SUPERUSER}@127.0.0.1:${port}/${database}`,
    MDS_SHARED_PASSWORD: PASSWORD,
    MDS_WAREHOUSE: warehouse.path,
  };
  return startProgram(["share", "--json"], { cwd: temporaryFolder(), env });
}
