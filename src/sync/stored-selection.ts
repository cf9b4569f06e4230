import type { Random } from "../runtime/random.ts";
import type { Connection } from "../warehouse/connection.ts";
import { storedRanking } from "../warehouse/entities.ts";
import { keepClockSkew } from "./clock-skew.ts";
import { type Directory, storedDirectory } from "./directory.ts";
import { type Intake, learnServiceTime } from "./intake.ts";
import { liquidCandidates } from "./liquid-indices.ts";
import { declareSelected } from "./prepare.ts";
import type { SyncSettings } from "./sync-settings.ts";
import { neededLists } from "./wanted-series.ts";

export interface StoredSelection {
  readonly settings: SyncSettings;
  readonly reader: Connection;
  readonly random: Random;
  readonly wsUrl: string;
}

/**
 * Says in the ledger what the settings select of the directory that was stored last, so that the live feed need not wait for
 * the lookups: what is not heard of the exchange tickers is lost. Undefined: too little is stored.
 */
export async function selectFromStore(
  intake: Intake,
  { settings, reader, random, wsUrl }: StoredSelection,
): Promise<Directory | undefined> {
  const { client, signal } = intake;
  const { marketCap } = settings.streams;
  const directory: Directory = {
    ...storedDirectory(reader),
    LX: liquidCandidates(settings.lxIndexIds, reader, []),
    // One that nobody has kept up to date would end what a fresher one, which was not stored, has selected.
    ranking: marketCap === false ? undefined : storedRanking(reader),
  };
  const isFilled =
    directory.GWA.length > 0 && neededLists(settings).every((list) => directory[list].length > 0);
  if (!isFilled) return undefined;
  // The live feed needs its token anyway, and whoever grants or refuses it dates the answer.
  if (client.serverNow() === undefined) await client.tokens.get(wsUrl, signal).catch(() => {});
  await learnServiceTime(intake, random);
  await keepClockSkew(intake, reader);
  await declareSelected(intake, settings, directory);
  return directory;
}
