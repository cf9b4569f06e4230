// The page polls the daemon every few seconds and shows the results.

import { cssColour, watchTheme } from "../shared/layout.js";
import { onCommit, onMissed, throttle } from "../shared/live.js";
import { byId, element, setText } from "../shared/page-base.js";
import { poll, startReading } from "../shared/reading.js";
import {
  brief,
  count,
  countNoun,
  duration,
  minuteOf,
  price,
  secondsBetween,
  title,
} from "../shared/text-format.js";
import { axis, describeCell, draw, expand, summarize } from "./heat-map.js";

// ---- the daemon

/** The daemon's clock minus the browser's clock, in milliseconds; ages follow the daemon's clock. */
let clockOffset = 0;

function showDaemon(daemon) {
  clockOffset = Date.parse(daemon.generated_at) - Date.now();
  byId("state").dataset.tone = daemon.tone;
  setText("sentence", daemon.sentence);
  setText("version", daemon.version);
  const running = duration(secondsBetween(daemon.started_at, daemon.generated_at));
  const details = `${describeBackfill(daemon.backfill)}${describeShared(daemon.shared)}`;
  setText("since", `Running for ${running}${details}`);
  document.title = daemon.tone === "ill" ? "✕ mds-sync" : "mds-sync";
  showRate(daemon.requests_per_second);
  showLimit(daemon.service);
  showServe(daemon.serve, daemon.generated_at);
  showErrors(daemon.errors, daemon.generated_at);
}

function describeShared(shared) {
  if (!shared) return "";
  const { state, role, leases, forwarded_by, lag_seconds } = shared;
  if (state === "standby")
    return ` · shared warehouse: standby, ${forwarded_by || "another daemon"} forwards`;
  const lag = lag_seconds === null ? "nothing forwarded yet" : `${duration(lag_seconds)} behind`;
  const share = role === "alone" ? "" : ` (${role}, ${leases} of 64 leases)`;
  return ` · shared warehouse ${state}${share}, ${lag}`;
}

function showServe(serve, now) {
  byId("serve").hidden = !serve;
  if (!serve) return;
  const dropped = serve.dropped > 0 ? ` · ${countNoun(serve.dropped, "slow client")} dropped` : "";
  setText("serve-note", `${serve.address} · ${countNoun(serve.requests, "request")}${dropped}`);
  byId("serve-clients").hidden = serve.clients.length === 0;
  byId("no-serve-clients").hidden = serve.clients.length > 0;
  byId("serve-clients").tBodies[0].replaceChildren(
    ...serve.clients.map((client) =>
      element(
        "tr",
        {},
        element("td", {}, client.client_id || "no token"),
        element("td", {}, client.address),
        element("td", {}, client.is_replay ? "a replay" : "live ticks"),
        element("td", { className: "number" }, count(client.subscriptions)),
        element("td", { className: "number" }, count(client.sent)),
        element("td", { className: "number" }, duration(secondsBetween(client.connected_at, now))),
      ),
    ),
  );
}

function describeBackfill(backfill) {
  if (!backfill) return "";
  const { percent, seconds_left, rows_per_second } = backfill;
  const left = seconds_left === null ? "" : `, about ${duration(seconds_left)} left`;
  return ` · first fill ${percent} %${left}, ${brief(rows_per_second)} rows/s`;
}

function showRate(rates) {
  const recent = rates.slice(-10);
  const mean = recent.reduce((sum, rate) => sum + rate, 0) / (recent.length || 1);
  setText("rate", mean >= 10 || mean === 0 ? count(Math.round(mean)) : mean.toFixed(1));
  const max = Math.max(4, ...rates);
  const points = rates.map(
    (rate, i) =>
      `${((i * 120) / Math.max(1, rates.length - 1)).toFixed(1)},${(23 - (rate * 22) / max).toFixed(1)}`,
  );
  const [area, curve] = byId("spark").children;
  curve.setAttribute("d", points.length > 1 ? `M${points.join("L")}` : "");
  area.setAttribute("d", points.length > 1 ? `M0,24L${points.join("L")}L120,24Z` : "");
}

const LIMIT_REASONS = {
  settings: "",
  rate_limited: "the service answers 429",
  overloaded: "the service fails above that",
  paused: "the service asked for a pause",
};

function showLimit({ concurrency, per_second, reason, open_breakers, recent_failures }) {
  const rate = per_second === null ? [] : [`at most ${Number(per_second.toPrecision(2))}/s`];
  const failing = open_breakers.map((endpoint) => (endpoint === "host" ? "no answer" : `${endpoint} fails`));
  const retries = Object.values(recent_failures).reduce((sum, times) => sum + times, 0);
  const retried = retries > 0 ? `${count(retries)} retried in 10 minutes` : "";
  const parts = [...rate, `${concurrency} at once`, LIMIT_REASONS[reason], ...failing, retried];
  setText("rate-note", parts.filter(Boolean).join(" · "));
}

function showErrors(errors, now) {
  byId("errors").hidden = errors.length === 0;
  byId("no-errors").hidden = errors.length > 0;
  byId("errors").replaceChildren(
    ...errors.map((error) => {
      const ago = `${duration(secondsBetween(error.last_at, now))} ago`;
      const times = error.count > 1 ? ` · ${count(error.count)} times` : "";
      const about = element("span", { className: "soft" }, `${error.where} · ${error.code}${times}`);
      return element(
        "li",
        {},
        element("span", { className: "faint", title: error.last_at }, ago),
        element("p", {}, error.message, element("br"), about),
      );
    }),
  );
}

// ---- the streams

function showStatus(status) {
  const sum = (of) => status.streams.reduce((total, stream) => total + stream[of], 0);
  setText("rows", brief(sum("rows")));
  byId("rows").title = count(sum("rows"));
  const used = status.streams.filter((stream) => stream.rows > 0).length;
  setText("rows-note", `in ${countNoun(used, "stream")}`);
  for (const state of ["open", "lost"]) {
    const ranges = sum(state);
    setText(state, brief(ranges));
    const over = `range${ranges === 1 ? "" : "s"}, ${duration(sum(`${state}_seconds`))} over all series`;
    setText(`${state}-note`, ranges > 0 ? over : "nothing");
  }
  setText("warehouse", status.warehouse);
  byId("streams").tBodies[0].replaceChildren(
    ...status.streams.map((stream) => streamRow(stream, status.withdrawals)),
  );
}

function withdrawalRemark({ index_type, name, rows, from_time, believed_at }) {
  const what = `${countNoun(rows, "row")} of ${index_type} ${name} since ${minuteOf(from_time)}`;
  return believed_at ? `withdrew ${what}` : `no longer serves ${what}: unconfirmed`;
}

function streamRow(stream, withdrawals) {
  const scopes = stream.missing_scopes.length > 0 ? `lacks ${stream.missing_scopes.join(", ")}` : "";
  const own = withdrawals.filter((withdrawal) => withdrawal.stream === stream.stream);
  const more = own.length > 3 ? `and ${own.length - 3} more withdrawals` : "";
  const offset = stream.live_offset_ms === null ? "" : `websocket ${stream.live_offset_ms} ms off REST`;
  const remark = [scopes, stream.last_error ?? "", ...own.slice(0, 3).map(withdrawalRemark), more, offset]
    .filter(Boolean)
    .join(" · ");
  const covered = stream.from_time ? `${stream.from_time.slice(0, 10)} → ${minuteOf(stream.to_time)}` : "";
  const age = stream.newest_age_s === null ? "–" : duration(stream.newest_age_s);
  const ranges = (number) => (number > 0 ? brief(number) : "–");
  return element(
    "tr",
    { "data-stream": stream.stream, ...(stream.rows === 0 && !remark ? { className: "faint" } : {}) },
    element("td", {}, title(stream.stream)),
    element("td", { className: "number age" }, age),
    element("td", { className: "number", title: count(stream.rows) }, brief(stream.rows)),
    element("td", { className: "wide faint" }, covered),
    element("td", { className: "number" }, ranges(stream.open)),
    element("td", { className: "number" }, ranges(stream.lost)),
    element("td", { className: "remark" }, remark),
  );
}

function showLatest(ticks) {
  const now = new Date(Date.now() + clockOffset).toISOString();
  byId("ticks").hidden = ticks.length === 0;
  byId("ticks").replaceChildren(
    ...ticks.map((tick) =>
      element(
        "a",
        {
          className: "tick",
          href: barsUrl(tick.index_type, tick.index_id),
          title: `${tick.index_type} ${tick.name} at ${tick.time}`,
        },
        element(
          "p",
          {},
          element("b", {}, tick.name),
          element("span", { className: "soft" }, ` ${tick.index_type}`),
          element("span", { className: "soft ago" }, duration(secondsBetween(tick.time, now))),
        ),
        element("p", {}, price(tick.price_exact)),
      ),
    ),
  );
}

// ---- what is missing

const DEFAULT_PARTS = 8;
let showAllMissing = false;
let missing;

function showMissing(answer) {
  missing = answer;
  const { open, lost, parts, lines } = answer;
  byId("missing").hidden = parts.length === 0;
  byId("nothing-missing").hidden = parts.length > 0;
  setText("nothing-missing", lines > 0 ? "Nothing is missing." : "Nothing is selected yet.");
  const left = open + lost - parts.length;
  const more = left > 0 ? `, the longest ${count(parts.length)} are listed` : "";
  setText("missing-note", open + lost > 0 ? `${count(open)} open, ${count(lost)} lost${more}` : "");
  const shown = showAllMissing ? parts : parts.slice(0, DEFAULT_PARTS);
  byId("missing").tBodies[0].replaceChildren(...shown.map(missingRow));
  byId("more-missing").hidden = shown.length === parts.length;
  setText("more-missing", `Show more (${count(parts.length - shown.length)})`);
}

function missingRow(part) {
  const name = part.name ?? part.index_id ?? "everything";
  const family = [title(part.stream), part.index_type].filter(Boolean).join(" · ");
  const ranges =
    part.ranges > 1
      ? [element("br"), element("span", { className: "soft" }, `${brief(part.ranges)} ranges`)]
      : [];
  return element(
    "tr",
    {},
    element(
      "td",
      { className: "series", title: name },
      name,
      element("br"),
      element("span", { className: "soft" }, family),
    ),
    element(
      "td",
      {},
      element("i", { className: "mark", "data-state": part.state }),
      part.state,
      element("br"),
      element("span", { className: "soft" }, part.reason),
    ),
    element("td", { className: "number" }, duration(part.seconds), ...ranges),
    element("td", { className: "wide faint" }, `${minuteOf(part.from_time)} → ${minuteOf(part.to_time)}`),
    element("td", { className: "wide faint" }, minuteOf(part.lost_at) || "–"),
  );
}

// ---- the heat map

/** The requested number of rows, by group. */
const requestedRows = new Map();
const strips = new Map();
const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) draw(target, strips.get(target).cells, cssColour);
});

const filter = { name: "", onlyProblems: false };
const isFiltered = () => filter.name !== "" || filter.onlyProblems;

function showCoverage({ columns, groups }) {
  const found = groups.reduce((sum, { matches }) => sum + matches, 0);
  setText("filter-note", isFiltered() ? describeFilter(found) : "");
  resized.disconnect();
  strips.clear();
  const nothing = element("p", { className: "soft empty" }, "Nothing is synced yet.");
  byId("coverage").replaceChildren(
    ...groups.map((group) => coverageGroup(group, columns[group.step])),
    ...(groups.length === 0 && !isFiltered() ? [nothing] : []),
  );
  for (const [canvas, { cells }] of strips) {
    draw(canvas, cells, cssColour);
    resized.observe(canvas);
  }
}

function describeFilter(found) {
  if (found > 0) return `${countNoun(found, "line")} found`;
  if (filter.name === "") return "No problems.";
  return `No ${filter.onlyProblems ? "incomplete " : ""}series has “${filter.name}” in its name.`;
}

function coverageGroup(group, labels) {
  const name = [title(group.stream), group.index_type].filter(Boolean).join(" · ");
  const period = {
    hour: `last ${labels.length} hours`,
    day: `last ${labels.length} days`,
    month: `by month since ${labels[0]}`,
  }[group.step];
  const broken = group.lines - group.whole;
  const health = broken === 0 ? "all complete" : `${count(group.whole)} complete, ${count(broken)} with gaps`;
  const noun = group.index_type ? "series" : "subscription";
  const members = group.index_type ? `${count(group.lines)} series` : countNoun(group.lines, noun);
  const marks = axis(labels, labels.length / 8);
  const map = element(
    "div",
    { className: "map" },
    element(
      "div",
      { className: "axis", "aria-hidden": "true" },
      ...marks.map(([share, text]) => {
        const mark = element("span", {}, text);
        mark.style.left = `${(share * 100).toFixed(2)}%`;
        return mark;
      }),
    ),
    ...(group.lines > 1 && !isFiltered() ? strip("all", group.summary, labels, true) : []),
    ...group.rows.flatMap((row) => {
      const name = row.name ?? row.index_id ?? "everything";
      return strip(name, row.runs, labels, false, barsLink(row, group));
    }),
  );
  const box = element(
    "div",
    { className: "group", "data-group": group.key },
    element(
      "h3",
      {},
      name,
      element("span", { className: "group-note" }, ` · ${members}, ${health} · ${period}`),
    ),
    map,
  );
  const left = group.matches - group.rows.length;
  if (left > 0) {
    const more = element("button", { type: "button" }, `Show more (${count(left)})`);
    more.addEventListener("click", () => {
      // The daemon rounds the number up to its next step.
      requestedRows.set(group.key, group.rows.length + 1);
      void coverage.now();
    });
    box.append(more);
  }
  return box;
}

/** The link to the bars of a series; undefined for streams without bars. */
function barsLink({ index_id }, { stream, index_type }) {
  return stream === "index_ticks" ? barsUrl(index_type, index_id) : undefined;
}

function barsUrl(type, id) {
  return `/bars?${new URLSearchParams({ type, id })}`;
}

function strip(name, runs, labels, isSummary, href) {
  const cells = expand(runs);
  const canvas = element("canvas", {
    className: isSummary ? "summary" : "",
    role: "img",
    "aria-label": `${name}: ${summarize(cells)}`,
  });
  strips.set(canvas, { name, cells, labels });
  const label = { className: isSummary ? "name all" : "name", title: name };
  return [href ? element("a", { ...label, href }, name) : element("span", label, name), canvas];
}

function coveragePath() {
  const params = new URLSearchParams([...filterParams()]);
  for (const [group, rows] of requestedRows) params.append("rows", `${group},${rows}`);
  return `/api/coverage?${params}`;
}

function filterParams() {
  return new URLSearchParams({
    ...(filter.name ? { name: filter.name } : {}),
    ...(filter.onlyProblems ? { problems: "1" } : {}),
  });
}

/** The URL keeps the filter, so that it can be shared. */
function applyFilter() {
  filter.name = byId("filter-name").value.trim();
  filter.onlyProblems = byId("only-problems").checked;
  requestedRows.clear();
  const query = String(filterParams());
  history.replaceState(null, "", query ? `/?${query}` : "/");
  void coverage.now();
}

function showTip(event) {
  const tip = byId("tip");
  const shown = strips.get(event.target);
  tip.hidden = !shown;
  if (!shown) return;
  const box = event.target.getBoundingClientRect();
  const share = (event.clientX - box.left) / box.width;
  const column = Math.min(shown.cells.length - 1, Math.max(0, Math.floor(share * shown.cells.length)));
  tip.textContent = `${shown.name} · ${shown.labels[column]}\n${describeCell(shown.cells[column])}`;
  const left = Math.min(event.clientX + 12, document.documentElement.clientWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${Math.max(8, box.top - tip.offsetHeight - 6)}px`;
}

const pollApi = (name, what, seconds, show, more = {}) =>
  poll({ reading: startReading(name, what), path: () => `/api/${name}`, seconds, show, ...more });

const daemon = pollApi("daemon", "the daemon’s state", 2, showDaemon, {
  onFailure: () => {
    byId("state").dataset.tone = "ill";
  },
});
const status = pollApi("status", "the streams", 5, showStatus);
const latest = pollApi("latest", "the newest ticks", 5, showLatest);
const gaps = pollApi("missing", "the gaps", 20, showMissing);
const asked = new URLSearchParams(location.search);
byId("filter-name").value = filter.name = asked.get("name") ?? "";
byId("only-problems").checked = filter.onlyProblems = asked.get("problems") === "1";
const coverage = pollApi("coverage", "the coverage", 20, showCoverage, {
  path: coveragePath,
  // More rows are the same question: the list stays where it is.
  question: () => String(filterParams()),
});
onCommit(throttle(2, () => void latest.now()));
onMissed(
  throttle(2, () => {
    for (const { now } of [daemon, status, latest, gaps, coverage]) void now();
  }),
);

byId("filter").addEventListener("input", applyFilter);
byId("filter").addEventListener("submit", (event) => event.preventDefault());

byId("more-missing").addEventListener("click", () => {
  showAllMissing = true;
  showMissing(missing);
});
document.addEventListener("pointermove", showTip, { passive: true });
document.addEventListener("pointerdown", showTip, { passive: true });
document.addEventListener("scroll", () => (byId("tip").hidden = true), { passive: true });
watchTheme(() => {
  for (const [canvas, { cells }] of strips) draw(canvas, cells, cssColour);
});
