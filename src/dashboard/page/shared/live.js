// What the daemon commits, as it happens. The tabs of one browser share one connection: browsers allow only six to a host.

import { byId, RETRY_SECONDS, setText } from "./page-base.js";
import { unreadState, watchReadings } from "./reading.js";
import { duration } from "./text-format.js";

/** Longer than the daemon's heartbeat: the page is no longer live. */
const STALE_AFTER_SECONDS = 12;
const events = ["hello", "commit", "idle"];
const commitListeners = new Set();
const reloadListeners = new Set();
let lastHeard = performance.now();
let hasHeard = false;
let isLost = false;
let version;
let rows = {};

/** Calls `listener` with { ticks, grown }: ticks are [type, id, ts, price], `grown` tells whether a stream has new rows. */
export function onCommit(listener) {
  commitListeners.add(listener);
}

/** Calls `listener` when events may have been missed: the page must read its state again. */
export function onMissed(listener) {
  reloadListeners.add(listener);
}

/** Calls `work` at once, and again when calls came meanwhile, but at most every `seconds`. */
export function throttle(seconds, work) {
  let timer;
  let isDue = false;
  const run = () => {
    if (timer) {
      isDue = true;
      return;
    }
    isDue = false;
    work();
    timer = setTimeout(() => {
      timer = undefined;
      if (isDue) run();
    }, seconds * 1000);
  };
  return run;
}

function hear({ name, data }) {
  const isReturn = name === "hello" && hasHeard;
  isLost = name === "lost";
  if (!isLost) {
    hasHeard = true;
    lastHeard = performance.now();
  }
  showState();
  if (name === "hello") {
    // A newer version may have other pages.
    if (version !== undefined && version !== data.version) location.reload();
    version = data.version;
  }
  if (isReturn) for (const reload of reloadListeners) reload();
  if (name !== "commit" || document.hidden) return;
  const before = rows;
  rows = data.rows;
  const grown = (stream) => before[stream] !== undefined && before[stream] !== rows[stream];
  for (const listener of commitListeners) listener({ ticks: data.ticks, grown });
}

function showState() {
  const silent = (performance.now() - lastHeard) / 1000;
  const isConnected = hasHeard && !isLost && silent < STALE_AFTER_SECONDS;
  // What the page shows follows the commits only if it could be read.
  const unread = unreadState();
  const isLive = isConnected && unread === "";
  byId("live").dataset.state = isLive ? "live" : hasHeard ? "stale" : "off";
  // One text a minute, not one a second: a screen reader announces each.
  const since = silent < 60 ? "" : ` for ${duration(silent)}`;
  const missing = hasHeard || isLost ? `no connection${since}` : "connecting";
  setText("live-text", isLive ? "live" : isConnected ? unread : missing);
}

/** Opens the connection of this browser, and passes everything on to the other tabs. */
function connect(channel) {
  const source = new EventSource("/api/events");
  for (const name of events) {
    source.addEventListener(name, ({ data }) => {
      const event = { name, data: JSON.parse(data) };
      hear(event);
      channel?.postMessage(event);
    });
  }
  source.addEventListener("error", () => {
    hear({ name: "lost" });
    channel?.postMessage({ name: "lost" });
    // The browser itself tries again only after a connection that broke, not after an error of the daemon.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => connect(channel), RETRY_SECONDS * 1000);
  });
}

/** The tab that holds the lock has the connection; when it closes, another one gets the lock. */
function share() {
  if (!navigator.locks || typeof BroadcastChannel !== "function") return connect();
  const channel = new BroadcastChannel("mds-sync-live");
  channel.addEventListener("message", ({ data }) => hear(data));
  void navigator.locks.request("mds-sync-live", () => {
    connect(channel);
    return new Promise(() => {});
  });
}

watchReadings(showState);
setInterval(showState, 1_000);
share();
