import { Failure } from "../model/failure.ts";
import type { ServeStatus } from "../model/status/share-status.ts";
import { resolveSiblingModule } from "../runtime/child-process.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { Thread } from "../runtime/thread.ts";
import type { ServeSettings } from "./serve-server.ts";

export interface ServeCalls {
  listen(settings: ServeSettings): { readonly baseUrl: string; readonly wsUrl: string };
}

export interface ServeNotices {
  status(status: ServeStatus): void;
}

export interface ServeThread {
  /** Undefined while the thread restarts. */
  readonly status: ServeStatus | undefined;
  close(): Promise<void>;
}

/** A client that makes the thread need more ends this thread, not the daemon. */
const MAX_HEAP_MB = 512;
const RESTART_DELAY_MS = 5_000;

/**
 * Runs the server beside the daemon, in a thread of its own: its requests must not delay the network I/O of the sync.
 * Resolves once it listens.
 */
export async function startServeThread(
  settings: ServeSettings,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<ServeThread> {
  let status: ServeStatus | undefined;
  const thread = new Thread<ServeCalls, ServeNotices>({
    name: "serve",
    file: resolveSiblingModule("./serve-worker", import.meta.url),
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    restartDelayMs: RESTART_DELAY_MS,
    bugCode: "serve_bug",
    clock,
    log,
    handlers: {
      status(reported) {
        status = reported;
      },
    },
    async onStart() {
      const { baseUrl, wsUrl } = await thread.call("listen", settings);
      log.info({ address: baseUrl, websocket: wsUrl }, "serving the warehouse");
    },
    onEnd() {
      status = undefined;
    },
    endFailure: (reason) => new Failure(reason, { code: "serve_bug" }),
  });
  await thread.start();
  return {
    get status() {
      return status;
    },
    close: () => thread.close(),
  };
}
