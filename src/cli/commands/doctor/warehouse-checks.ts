import { accessSync, constants, existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { exitCode, Failure } from "../../../model/failure.ts";
import type { Clock } from "../../../runtime/clock.ts";
import {
  daysUntilFull,
  type SizeSample,
  SOON_FULL_DAYS,
  sizeSamples,
} from "../../../warehouse/read/size-history.ts";
import { lookOn } from "../../../warehouse/reader.ts";
import {
  assertLocalFileSystem,
  type FileSystemInfo,
  fileSystemInfo,
  freeBytes,
  isSymbolicLink,
  resolvePath,
  SPACE_RESERVE_BYTES,
} from "../../../warehouse/sqlite/disk.ts";
import { quickCheck } from "../../../warehouse/sqlite/quick-check.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

const CHECK_DEADLINE_MS = 5_000;
/** The daemon still works, and a day of everything may not fit any more. */
const LITTLE_SPACE_BYTES = 1024 ** 3;

export async function checkWarehouse(
  given: string,
  clock: Clock,
  fileSystem: FileSystemInfo = fileSystemInfo,
): Promise<Finding[]> {
  const place = nearestDirectory(given);
  const ofFile = await checkFile(given, clock);
  return [...ofFile, ...checkPlace(given, place, fileSystem), checkSpace(place, fileSystem, growth(given))];
}

async function checkFile(given: string, clock: Clock): Promise<Finding[]> {
  const check = "warehouse";
  try {
    lookOn(given, () => {});
  } catch (error) {
    if (error instanceof Failure && error.code === "no_warehouse") {
      return [ok(check, `none yet at ${given}: the first backfill makes it`)];
    }
    if (error instanceof Failure && error.code === "older_warehouse") {
      return [warning(check, error.message, error.remedy ?? "")];
    }
    return [problem(check, error)];
  }
  const checked = await quickCheck(resolvePath(given), { clock, deadlineMs: CHECK_DEADLINE_MS });
  if (checked.verdict === "damaged") {
    return [
      problem(
        check,
        new Failure(`${given} is damaged: ${checked.finding}`, {
          family: "operator",
          code: "db_corrupt",
          remedy: "`mds-sync backfill` sets the file aside, never deletes it, and fills a new one",
        }),
      ),
    ];
  }
  const depth =
    checked.verdict === "sound" ? "sound" : `no damage found in ${CHECK_DEADLINE_MS / 1000} seconds`;
  const link = isSymbolicLink(given)
    ? [warning("link", `${given} is a symbolic link`, "let warehouse.path name the file itself")]
    : [];
  return [ok(check, `${given}, this version's, ${depth}`), ...link];
}

/** The directory has to take the WAL, the lock and the shared memory beside the file. */
function checkPlace(given: string, place: string, fileSystem: FileSystemInfo): Finding[] {
  const check = "directory";
  try {
    assertLocalFileSystem(join(place, "mds.sqlite"), fileSystem);
    for (const path of [place, ...(existsSync(given) ? [given] : [])]) accessSync(path, constants.W_OK);
  } catch (error) {
    if (error instanceof Failure) return [problem(check, error)];
    const failure = new Failure(`${existsSync(given) ? given : place} cannot be written by this user`, {
      family: "operator",
      code: "db_not_writable",
      remedy: "run as its owner, or make this user the owner of the directory and the files in it",
      exit: exitCode.usage,
    });
    return [problem(check, failure)];
  }
  return [ok(check, `${place} is local and can be written`)];
}

/** How large the warehouse was of late, as far as that can be read. */
function growth(given: string): SizeSample[] {
  try {
    return lookOn(given, sizeSamples);
  } catch (error) {
    if (error instanceof Failure) return [];
    throw error;
  }
}

function checkSpace(place: string, fileSystem: FileSystemInfo, samples: readonly SizeSample[]): Finding {
  const check = "disk";
  const free = freeBytes(join(place, "mds.sqlite"), fileSystem);
  const text =
    free >= 1024 ** 3 ? `${(free / 1024 ** 3).toFixed(1)} GiB` : `${Math.floor(free / 1024 ** 2)} MiB`;
  if (free < SPACE_RESERVE_BYTES) {
    const failure = new Failure(`only ${text} are left: nothing is written`, {
      family: "retry",
      code: "disk_full",
      remedy: "free some space; the sync resumes by itself",
    });
    return problem(check, failure);
  }
  const days = daysUntilFull(samples, free);
  if (days !== undefined && days < SOON_FULL_DAYS)
    return warning(
      check,
      `${text} are free, which last ${days.toFixed(1)} days at the present growth`,
      "free some space, move the warehouse, or set retention",
    );
  return free < LITTLE_SPACE_BYTES
    ? warning(check, `only ${text} are left`, "free some space, or move the warehouse")
    : ok(check, `${text} are free`);
}

function nearestDirectory(given: string): string {
  let place = dirname(resolve(resolvePath(given)));
  while (!existsSync(place) && dirname(place) !== place) place = dirname(place);
  return place;
}
