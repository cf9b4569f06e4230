import { Failure } from "../../model/failure.ts";
import { exportRefused } from "../errors.ts";
import type { CheckpointFormat } from "./checkpoint.ts";
import {
  type Action,
  applyActions,
  type DeltaTable,
  emptyTable,
  type TableState,
  tableChanges,
} from "./delta-table.ts";

/** The files of a `_delta_log`, in a folder or in a bucket. */
export interface LogFiles {
  /** How messages name the log. */
  readonly place: string;
  list(): Promise<readonly { readonly name: string; readonly modifiedMs: number }[]>;
  read(name: string): Promise<string>;
  /** Creates a file atomically; false if it exists. */
  create(name: string, text: string): Promise<boolean>;
  /** Moves a local file into the log atomically. */
  store(name: string, file: string): Promise<void>;
  /** The path of a file of the log, or of a local copy. */
  locate(name: string): Promise<string>;
  remove(name: string): Promise<void>;
}

export interface CommitOptions {
  readonly checkpoints: CheckpointFormat;
  readonly program: string;
  /** The export that the entry belongs to. */
  readonly generation: string;
  /** Whether a newer export than this one wrote an entry. */
  readonly isNewer: (entry: string, generation: string) => boolean;
  readonly now: number;
  /** How long readers may use an earlier version. */
  readonly keepMs: number;
  /** Runs work whose failure does not harm the commit. */
  readonly cleanUp: (work: () => Promise<void>) => Promise<void>;
}

/** A reader replays at most this many entries. */
const CHECKPOINT_INTERVAL = 10;
/** Only another program that writes to the table can cause conflicts. */
const MAX_CONFLICTS = 20;
const LAST_CHECKPOINT = "_last_checkpoint";

const numbered = (version: number) => String(version).padStart(20, "0");
const entryName = (version: number) => `${numbered(version)}.json`;
const checkpointName = (version: number) => `${numbered(version)}.checkpoint.parquet`;

/**
 * Makes the newest version of a table equal to `table`. Returns its number, an old one if nothing changed. Creating the
 * entry is the commit: if another writer has created that version, the changes are computed again from the new state.
 */
export async function commitTable(
  files: LogFiles,
  table: DeltaTable,
  options: CommitOptions,
): Promise<number> {
  const { program, generation, isNewer, now } = options;
  for (let conflicts = 0; conflicts < MAX_CONFLICTS; conflicts++) {
    const state = await readTable(files, options.checkpoints);
    if (isNewer(state.generation ?? "", generation)) return state.version;
    const changes = tableChanges(state, table, now);
    if (changes.length === 0) return state.version;
    const version = state.version + 1;
    const commitInfo = {
      timestamp: now,
      operation: "WRITE",
      operationParameters: { mode: "Overwrite" },
      engineInfo: `mds-sync/${program}`,
      generation,
    };
    const actions: Action[] = [{ commitInfo }, ...changes];
    if (!(await files.create(entryName(version), lines(actions)))) continue;
    if (version > 0 && version % CHECKPOINT_INTERVAL === 0)
      await writeCheckpoint(files, applyActions(state, version, actions), options);
    return version;
  }
  throw new Failure(`another program keeps writing to the table log ${files.place}`, {
    code: "export_elsewhere",
    remedy: "stop it: only mds-sync may write to an exported table",
  });
}

/** Replays the log from its newest checkpoint. */
export async function readTable(files: LogFiles, checkpoints: CheckpointFormat): Promise<TableState> {
  const names = (await files.list()).map(({ name }) => name);
  const checkpoint = Math.max(-1, ...versionsOf(names, ".checkpoint.parquet"));
  const versions = versionsOf(names, ".json")
    .filter((version) => version > checkpoint)
    .sort((a, b) => a - b);
  if (versions.some((version, at) => version !== checkpoint + 1 + at))
    throw unreadable(files, "an entry is missing");
  let state: TableState = emptyTable;
  if (checkpoint >= 0)
    state = applyActions(
      state,
      checkpoint,
      await checkpoints.read(await files.locate(checkpointName(checkpoint))),
    );
  for (const version of versions) {
    const text = await files.read(entryName(version));
    state = applyActions(state, version, parseLines(text, files, version));
  }
  return state;
}

/** Afterwards removes what precedes a checkpoint that is older than any reader. */
async function writeCheckpoint(
  files: LogFiles,
  { version, protocol, metaData, files: added }: TableState,
  { checkpoints, now, keepMs, cleanUp }: CommitOptions,
): Promise<void> {
  if (!protocol || !metaData) return;
  const actions: Action[] = [
    { protocol },
    { metaData },
    ...[...added.values()].map((add) => ({ add: { ...add, dataChange: false } })),
  ];
  await files.store(checkpointName(version), await checkpoints.write(lines(actions)));
  await files.store(
    LAST_CHECKPOINT,
    checkpoints.writeText(JSON.stringify({ version, size: actions.length })),
  );
  await cleanUp(async () => {
    const all = await files.list();
    const old = all.filter(({ modifiedMs }) => now - modifiedMs > keepMs).map(({ name }) => name);
    const first = Math.max(-1, ...versionsOf(old, ".checkpoint.parquet").filter((each) => each < version));
    for (const { name } of all)
      if (Number(/^\d{20}(?=\.)/.exec(name)?.[0] ?? first) < first) await files.remove(name);
  });
}

function versionsOf(names: readonly string[], end: string): number[] {
  return names
    .filter((name) => /^\d{20}\./.test(name) && name.slice(20) === end)
    .map((name) => Number(name.slice(0, 20)));
}

const lines = (actions: readonly Action[]) => actions.map((action) => `${JSON.stringify(action)}\n`).join("");

function parseLines(text: string, files: LogFiles, version: number): Action[] {
  try {
    return text
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map((line) => JSON.parse(line) as Action);
  } catch {
    throw unreadable(files, `entry ${version} is no JSON`);
  }
}

function unreadable({ place }: LogFiles, why: string) {
  return exportRefused(
    `the table log ${place} cannot be read (${why})`,
    "remove that folder; the next export begins a new log",
  );
}
