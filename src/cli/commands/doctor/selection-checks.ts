import { exitCode } from "../../../model/failure.ts";
import { MICROS_PER_MS } from "../../../model/time.ts";
import type { ServiceClient } from "../../../service/client/client.ts";
import type { SyncSettings } from "../../../sync/context/context.ts";
import { fetchAllRecords } from "../../../sync/fetch/fetch-records.ts";
import { fetchDirectory } from "../../../sync/selection/fetch-directory.ts";
import { describeNotice, findNotices, type SelectorNotice } from "../../../sync/selection/selectors.ts";
import {
  countShared,
  isSameService,
  otherServiceFailure,
  readServiceIdentity,
} from "../../../warehouse/lookups/service-identity.ts";
import { openReader } from "../../../warehouse/reader.ts";
import type { Connection } from "../../../warehouse/sqlite/connection.ts";
import { Check, type Finding, type Probe, unlessFailed } from "./finding.ts";

interface SelectionCheckOptions extends Probe {
  /** Undefined if the service is not configured or grants no token. */
  readonly client: ServiceClient | undefined;
  readonly settings: SyncSettings;
  readonly warehousePath: string;
}

const identity = new Check("identity");
const selectors = new Check("selectors");

/** Checks that the warehouse belongs to the service, and that the selectors name what the service lists. */
export async function checkSelection(options: SelectionCheckOptions): Promise<Finding[]> {
  const reader = await unlessFailed(() => openReader(options.warehousePath));
  try {
    return [...(await checkIdentity(options, reader)), ...(await checkSelectors(options, reader))];
  } finally {
    reader?.close();
  }
}

async function checkIdentity(
  { client, warehousePath, runWithTimeout }: SelectionCheckOptions,
  reader: Connection | undefined,
): Promise<Finding[]> {
  if (!reader) return [];
  const known = readServiceIdentity(reader, "assets");
  if (known.ids.size === 0) return [];
  const belongs = identity.ok(`the data is from ${known.url ?? "a service whose address is unknown"}`);
  const listed =
    client &&
    (await unlessFailed(() => runWithTimeout((signal) => fetchAllRecords(client, "assets", signal))));
  if (!client || !listed) return [belongs];
  const ids = new Set(listed.map(({ id }) => id));
  if (isSameService(known.ids, ids)) return [belongs];
  const evidence = `it lists ${countShared(known.ids, ids)} of ${known.ids.size} known assets`;
  const failure = otherServiceFailure(warehousePath, known.url, { url: client.address, evidence });
  return [identity.failure(failure)];
}

async function checkSelectors(
  { settings, client, clock, runWithTimeout }: SelectionCheckOptions,
  reader: Connection | undefined,
): Promise<Finding[]> {
  const at = () => Math.floor((client?.server.now() ?? clock.now()) * MICROS_PER_MS);
  const directory = await unlessFailed(() =>
    runWithTimeout((signal) => fetchDirectory(settings, reader, client, at, signal)),
  );
  if (!directory || directory.GWA.length === 0) return [];
  const notices = findNotices(settings, directory);
  return notices.length > 0
    ? notices.map((notice) => noticeFinding(notice, settings.streams))
    : [selectors.ok("the service lists every name under `sync`")];
}

function noticeFinding(notice: SelectorNotice, { marketCap }: SyncSettings["streams"]): Finding {
  const message = describeNotice(notice);
  if (notice.kind === "shared")
    return selectors.warning(message, "give the id instead of the name to select one");
  const remedy =
    notice.kind === "unknown"
      ? "correct the name under `sync`: everything else is synced meanwhile"
      : notice.missing === "ranking"
        ? marketCap
          ? "run `mds-sync backfill` once without --from and --stream: it fetches the ranking"
          : "select `marketCap` too, or list the names"
        : "set it to `none` if the service has none; else it is asked again";
  return selectors.problem(message, remedy, exitCode.incomplete);
}
