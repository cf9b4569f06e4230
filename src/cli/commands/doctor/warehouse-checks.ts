import { accessSync, constants, existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { exitCode, Failure, failureCode } from "../../../model/failure.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { withReader } from "../../../warehouse/reader.ts";
import {
  assertLocalFileSystem,
  type FileSystemInfo,
  fileSystemInfo,
  isSymbolicLink,
  MIN_FREE_BYTES,
  readFreeBytes,
  resolvePath,
} from "../../../warehouse/sqlite/disk.ts";
import { runQuickCheck } from "../../../warehouse/sqlite/quick-check.ts";
import {
  DISK_FULL_WARNING_DAYS,
  estimateDaysUntilFull,
  readSizeSamples,
  type SizeSample,
} from "../../../warehouse/tables/size-history.ts";
import { formatBytes } from "../../output/text.ts";
import { Check, type Finding, unlessFailed } from "./finding.ts";

const QUICK_CHECK_TIMEOUT_MS = 5_000;
/** The daemon still works, but a day of all streams may no longer fit. */
const LOW_SPACE_BYTES = 1024 ** 3;

export async function checkWarehouse(
  warehousePath: string,
  clock: Clock,
  fileSystem: FileSystemInfo = fileSystemInfo,
): Promise<Finding[]> {
  const directory = nearestDirectory(warehousePath);
  const fileFindings = await checkFile(warehousePath, clock);
  const sizes = await unlessFailed(() => withReader(warehousePath, readSizeSamples));
  return [
    ...fileFindings,
    ...checkDirectory(warehousePath, directory, fileSystem),
    checkSpace(directory, fileSystem, sizes ?? []),
  ];
}

async function checkFile(warehousePath: string, clock: Clock): Promise<Finding[]> {
  const check = new Check("warehouse");
  try {
    withReader(warehousePath, () => {});
  } catch (error) {
    if (failureCode(error) === "no_warehouse") {
      return [check.ok(`${warehousePath} does not exist yet: the first backfill creates it`)];
    }
    if (error instanceof Failure && error.code === "older_warehouse") {
      return [check.warning(error.message, error.remedy ?? "")];
    }
    return [check.failure(error)];
  }
  const checked = await runQuickCheck(resolvePath(warehousePath), {
    clock,
    deadlineMs: QUICK_CHECK_TIMEOUT_MS,
  });
  if (checked.outcome === "damaged") {
    const remedy = "`mds-sync backfill` quarantines the file, never deletes it, and fills a new one";
    const message = `${warehousePath} is damaged: ${checked.finding}`;
    return [check.problem(message, remedy, exitCode.unexpected)];
  }
  const damage =
    checked.outcome === "sound"
      ? "no damage found"
      : `no damage found in ${QUICK_CHECK_TIMEOUT_MS / 1000} seconds`;
  const link = isSymbolicLink(warehousePath)
    ? [
        new Check("link").warning(
          `${warehousePath} is a symbolic link`,
          "set warehouse.path to the file itself",
        ),
      ]
    : [];
  return [check.ok(`${warehousePath} has the current schema, ${damage}`), ...link];
}

/** The directory must be writable: SQLite creates the WAL and the shared memory in it, the daemon its lock. */
function checkDirectory(warehousePath: string, directory: string, fileSystem: FileSystemInfo): Finding[] {
  const check = new Check("directory");
  try {
    assertLocalFileSystem(join(directory, "mds.sqlite"), fileSystem);
    for (const path of [directory, ...(existsSync(warehousePath) ? [warehousePath] : [])])
      accessSync(path, constants.W_OK);
  } catch (error) {
    if (error instanceof Failure) return [check.failure(error)];
    const message = `${existsSync(warehousePath) ? warehousePath : directory} cannot be written by this user`;
    const remedy = "run as its owner, or change the owner of the directory and its files";
    return [check.problem(message, remedy, exitCode.usage)];
  }
  return [check.ok(`${directory} is local and can be written`)];
}

function checkSpace(directory: string, fileSystem: FileSystemInfo, samples: readonly SizeSample[]): Finding {
  const check = new Check("disk");
  const free = readFreeBytes(join(directory, "mds.sqlite"), fileSystem);
  const text = formatBytes(free);
  if (free < MIN_FREE_BYTES) {
    const remedy = "free some space; the sync resumes automatically";
    return check.problem(`only ${text} are free: nothing is written`, remedy, exitCode.tryLater);
  }
  const days = estimateDaysUntilFull(samples, free);
  if (days !== undefined && days < DISK_FULL_WARNING_DAYS)
    return check.warning(
      `${text} are free, enough for ${days.toFixed(1)} days at the current growth`,
      "free some space, move the warehouse, or set retention",
    );
  return free < LOW_SPACE_BYTES
    ? check.warning(`only ${text} are free`, "free some space, or move the warehouse")
    : check.ok(`${text} are free`);
}

function nearestDirectory(warehousePath: string): string {
  let directory = dirname(resolve(resolvePath(warehousePath)));
  while (!existsSync(directory) && dirname(directory) !== directory) directory = dirname(directory);
  return directory;
}
