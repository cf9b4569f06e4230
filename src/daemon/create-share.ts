import type { LoadedSettings } from "../config/load-settings.ts";
import { findSharedSettings } from "../config/shared-settings.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { ShareThread } from "../share/thread/share-thread.ts";
import { SyncShare } from "../sync/context/sync-share.ts";
import type { SyncSupervisor } from "../sync/supervisor.ts";

interface CreateShareOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly onFailure: (code: string, message: string) => void;
  /** Undefined until the sync runs. */
  readonly supervisor: () => SyncSupervisor | undefined;
}

export interface DaemonShare {
  readonly thread: ShareThread;
  /** What the sync follows; undefined: everything. */
  readonly followed: SyncShare | undefined;
}

/** Forwarding to the shared warehouse; undefined if the settings name none. */
export function createShare(
  loaded: LoadedSettings,
  { clock, log, onFailure, supervisor }: CreateShareOptions,
): DaemonShare | undefined {
  const shared = findSharedSettings(loaded);
  if (!shared) return undefined;
  const followed = shared.role === "split" ? new SyncShare() : undefined;
  const thread = new ShareThread({
    ...shared,
    warehouse: loaded.settings.warehouse.path,
    clock,
    log,
    onFailure(code, message) {
      followed?.stopWaiting();
      onFailure(code, message);
    },
    async onFollow(change) {
      followed?.update(change);
      await supervisor()?.applyShare();
    },
  });
  return { thread, followed };
}
