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
import { type Finding, okFinding, problemFinding, warningFinding } from "./finding.ts";

const QUICK_CHECK_TIMEOUT_MS = 5_000;
/** The daemon still works, but a day of all streams may no longer fit. */
const LOW_SPACE_BYTES = 1024 ** 3;

export async function checkWarehouse(
  given: string,
  clock: Clock,
  fileSystem: FileSystemInfo = fileSystemInfo,
): Promise<Finding[]> {
  const directory = nearestDirectory(given);
  const fileFindings = await checkFile(given, clock);
  return [
    ...fileFindings,
    ...checkDirectory(given, directory, fileSystem),
    checkSpace(directory, fileSystem, recentSizes(given)),
  ];
}

async function checkFile(given: string, clock: Clock): Promise<Finding[]> {
  const check = "warehouse";
  try {
    withReader(given, () => {});
  } catch (error) {
    if (failureCode(error) === "no_warehouse") {
      return [okFinding(check, `none yet at ${given}: the first backfill creates it`)];
    }
    if (error instanceof Failure && error.code === "older_warehouse") {
      return [warningFinding(check, error.message, error.remedy ?? "")];
    }
    return [problemFinding(check, error)];
  }
  const checked = await runQuickCheck(resolvePath(given), {
    clock,
    deadlineMs: QUICK_CHECK_TIMEOUT_MS,
  });
  if (checked.outcome === "damaged") {
    return [
      problemFinding(
        check,
        new Failure(`${given} is damaged: ${checked.finding}`, {
          code: "db_corrupt",
          remedy: "`mds-sync backfill` quarantines the file, never deletes it, and fills a new one",
        }),
      ),
    ];
  }
  const depth =
    checked.outcome === "sound" ? "sound" : `no damage found in ${QUICK_CHECK_TIMEOUT_MS / 1000} seconds`;
  const link = isSymbolicLink(given)
    ? [warningFinding("link", `${given} is a symbolic link`, "let warehouse.path name the file itself")]
    : [];
  return [okFinding(check, `${given}, this version's, ${depth}`), ...link];
}

/** SQLite also writes the WAL and the shared memory into the directory, and the daemon its lock. */
function checkDirectory(given: string, directory: string, fileSystem: FileSystemInfo): Finding[] {
  const check = "directory";
  try {
    assertLocalFileSystem(join(directory, "mds.sqlite"), fileSystem);
    for (const path of [directory, ...(existsSync(given) ? [given] : [])]) accessSync(path, constants.W_OK);
  } catch (error) {
    if (error instanceof Failure) return [problemFinding(check, error)];
    const failure = new Failure(`${existsSync(given) ? given : directory} cannot be written by this user`, {
      code: "db_not_writable",
      remedy: "run as its owner, or change the owner of the directory and its files",
      exit: exitCode.usage,
    });
    return [problemFinding(check, failure)];
  }
  return [okFinding(check, `${directory} is local and can be written`)];
}

/** The recent sizes of the warehouse; empty if it cannot be read. */
function recentSizes(given: string): SizeSample[] {
  try {
    return withReader(given, readSizeSamples);
  } catch (error) {
    if (error instanceof Failure) return [];
    throw error;
  }
}

function checkSpace(directory: string, fileSystem: FileSystemInfo, samples: readonly SizeSample[]): Finding {
  const check = "disk";
  const free = readFreeBytes(join(directory, "mds.sqlite"), fileSystem);
  const text = formatBytes(free);
  if (free < MIN_FREE_BYTES) {
    const failure = new Failure(`only ${text} are left: nothing is written`, {
      code: "disk_full",
      remedy: "free some space; the sync resumes automatically",
    });
    return problemFinding(check, failure);
  }
  const days = estimateDaysUntilFull(samples, free);
  if (days !== undefined && days < DISK_FULL_WARNING_DAYS)
    return warningFinding(
      check,
      `${text} are free, which last ${days.toFixed(1)} days at the current growth`,
      "free some space, move the warehouse, or set retention",
    );
  return free < LOW_SPACE_BYTES
    ? warningFinding(check, `only ${text} are left`, "free some space, or move the warehouse")
    : okFinding(check, `${text} are free`);
}

function nearestDirectory(given: string): string {
  let directory = dirname(resolve(resolvePath(given)));
  while (!existsSync(directory) && dirname(directory) !== directory) directory = dirname(directory);
  return directory;
}
