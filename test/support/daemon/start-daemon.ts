import { toSyncSettings } from "../../../src/cli/support/session.ts";
import { runDaemon } from "../../../src/daemon/daemon.ts";
import { Failure } from "../../../src/model/failure.ts";

type DaemonOptions = Parameters<typeof runDaemon>[0];

/** Starts a daemon in this process. */
export function startDaemon(
  options: Pick<DaemonOptions, "loaded" | "clock" | "log"> & Partial<DaemonOptions>,
) {
  const stopping = new AbortController();
  const state = { address: "", isFilled: false };
  const done = runDaemon({
    settings: toSyncSettings(options.loaded),
    version: "0.0.0",
    stopping: stopping.signal,
    onServing(address) {
      state.address = address;
    },
    onFilled() {
      state.isFilled = true;
    },
    ...options,
  });
  done.catch(() => {});
  const stop = () => stopping.abort(new Failure("stopped", { family: "operator", code: "stopped", exit: 0 }));
  /** `done` settles when the daemon ends, with the error that ended it. */
  return { state, done, stop };
}
