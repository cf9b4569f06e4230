// The page polls the daemon every few seconds and shows the results.

import type { GapSummary, GapSummaryResult } from "../../../model/answers/heatmap.ts";
import { describeConfirmations } from "../../../model/status/confirmations.ts";
import { gapStates } from "../../../model/status/gap-state.ts";
import type { ServeStatus } from "../../../model/status/serve-status.ts";
import { describeLimit, HOST_SCOPE, type ServiceCondition } from "../../../model/status/service-condition.ts";
import { describeShare, listShareParts, type ShareStatus } from "../../../model/status/share-status.ts";
import type {
  StreamStatus,
  WarehouseStatus,
  WithdrawalStatus,
} from "../../../model/status/warehouse-status.ts";
import type { DaemonAnswer } from "../../api-answers.ts";
import "../shared/layout.ts";
import { rereadOnNews } from "../shared/live.ts";
import { byId, cell, element, setRows, setText, soft } from "../shared/page-base.ts";
import { describeBackfill } from "../shared/proof.ts";
import { poll } from "../shared/reading.ts";
import {
  asOf,
  brief,
  count,
  countNoun,
  duration,
  minuteOf,
  secondsBetween,
  title,
} from "../shared/text-format.ts";
import { startCoverage } from "./coverage-map.ts";

// ---- the daemon

/** When the daemon last told its state, and when the other parts of the page were read, by the element that tells it. */
let now = "";
const readAt = new Map<string, string>();

function showAges(): void {
  for (const [id, time] of readAt) setText(id, asOf(time, now));
}

function showDaemon(daemon: DaemonAnswer): void {
  now = daemon.generated_at;
  showAges();
  byId("state").dataset.tone = daemon.tone;
  setText("sentence", daemon.sentence);
  const running = duration(secondsBetween(daemon.started_at, daemon.generated_at));
  const details = daemon.backfill ? ` · ${describeBackfill(daemon.backfill)}` : "";
  setText("since", `Running for ${running}${details}`);
  document.title = `${daemon.tone === "ill" ? "✕ " : ""}Sync · mds-sync`;
  showRate(daemon.requests_per_second);
  showLimit(daemon.service);
  showShared(daemon.shared);
  showServe(daemon.serve, daemon.generated_at);
  showErrors(daemon.errors, daemon.generated_at);
}

function showShared(shared: ShareStatus | null): void {
  byId("shared").hidden = !shared;
  if (!shared) return;
  const error = shared.last_error === null ? "" : ` · ${shared.last_error}`;
  setText("shared-note", `${shared.name}: ${describeShare(shared, duration)}${error}`);
  const parts = listShareParts(shared, duration);
  byId("shared-parts").hidden = parts.length === 0;
  setRows(
    "shared-parts",
    parts.map(({ what, name, state }) =>
      element("tr", {}, cell("series", name, element("br"), soft(what)), cell("remark", state)),
    ),
  );
}

function showServe(serve: ServeStatus | null, now: string): void {
  byId("serve").hidden = !serve;
  if (!serve) return;
  const dropped = serve.dropped > 0 ? ` · ${countNoun(serve.dropped, "slow client")} dropped` : "";
  setText("serve-note", `${serve.address} · ${countNoun(serve.requests, "request")}${dropped}`);
  byId("serve-clients").hidden = serve.clients.length === 0;
  byId("no-serve-clients").hidden = serve.clients.length > 0;
  setRows(
    "serve-clients",
    serve.clients.map((client) =>
      element(
        "tr",
        {},
        element("td", {}, client.client_id || "no token"),
        element("td", {}, client.address),
        element("td", {}, client.is_replay ? "a replay" : "live ticks"),
        cell("number", count(client.subscriptions)),
        cell("number", count(client.sent)),
        cell("number", duration(secondsBetween(client.connected_at, now))),
      ),
    ),
  );
}

function showRate(rates: readonly number[]): void {
  const recent = rates.slice(-10);
  const mean = recent.reduce((sum, rate) => sum + rate, 0) / (recent.length || 1);
  setText("rate", mean >= 10 || mean === 0 ? count(Math.round(mean)) : mean.toFixed(1));
  const max = Math.max(4, ...rates);
  const points = rates.map(
    (rate, i) =>
      `${((i * 120) / Math.max(1, rates.length - 1)).toFixed(1)},${(23 - (rate * 22) / max).toFixed(1)}`,
  );
  const [area, curve] = byId("spark", SVGElement).children;
  curve?.setAttribute("d", points.length > 1 ? `M${points.join("L")}` : "");
  area?.setAttribute("d", points.length > 1 ? `M0,24L${points.join("L")}L120,24Z` : "");
}

function showLimit(service: ServiceCondition): void {
  const { concurrency, per_second, open_breakers, recent_failures } = service;
  const rate = per_second === null ? [] : [`at most ${Number(per_second.toPrecision(2))}/s`];
  const failing = open_breakers.map((endpoint) =>
    endpoint === HOST_SCOPE ? "no answer" : `${endpoint} fails`,
  );
  const retries = Object.values(recent_failures).reduce((sum, times) => sum + times, 0);
  const retried = retries > 0 ? `${count(retries)} retried in 10 minutes` : "";
  const parts = [...rate, `${concurrency} at once`, describeLimit(service), ...failing, retried];
  setText("rate-note", parts.filter(Boolean).join(" · "));
}

function showErrors(errors: DaemonAnswer["errors"], now: string): void {
  byId("errors").hidden = errors.length === 0;
  byId("no-errors").hidden = errors.length > 0;
  byId("errors").replaceChildren(
    ...errors.map((error) => {
      const ago = `${duration(secondsBetween(error.last_at, now))} ago`;
      const times = error.count > 1 ? ` · ${count(error.count)} times` : "";
      const about = soft(`${error.where} · ${error.code}${times}`);
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

function showStatus(status: WarehouseStatus): void {
  const sum = (of: "rows" | (typeof gapStates)[number]) =>
    status.streams.reduce((total, stream) => total + stream[of], 0);
  setText("rows", brief(sum("rows")));
  byId("rows").title = count(sum("rows"));
  const used = status.streams.filter((stream) => stream.rows > 0).length;
  setText("rows-note", `in ${countNoun(used, "stream")}`);
  readAt.set("status-age", status.generated_at);
  const most = (state: "open" | "lost") =>
    Math.max(...status.streams.map((stream) => stream[`${state}_max_seconds`]));
  const confirmation = describeConfirmations(status.confirmations, status.generated_at);
  const notes = {
    open: `range${sum("open") === 1 ? "" : "s"}, at most ${duration(most("open"))} of a series`,
    unconfirmed: confirmation ?? "the newest moments of each series",
    lost: `range${sum("lost") === 1 ? "" : "s"}, at most ${duration(most("lost"))} of a series`,
  };
  for (const state of gapStates) {
    setText(state, brief(sum(state)));
    setText(`${state}-note`, sum(state) > 0 ? notes[state] : "nothing");
  }
  setText("warehouse", status.warehouse);
  setRows(
    "streams",
    status.streams.map((stream) => streamRow(stream, status.withdrawals)),
  );
}

function withdrawalRemark({ index_type, name, rows, from_time, believed_at }: WithdrawalStatus): string {
  const what = `${countNoun(rows, "row")} of ${index_type} ${name} since ${minuteOf(from_time)}`;
  return believed_at ? `withdrew ${what}` : `no longer serves ${what}: unconfirmed`;
}

function streamRow(stream: StreamStatus, withdrawals: readonly WithdrawalStatus[]): HTMLTableRowElement {
  const scopes = stream.missing_scopes.length > 0 ? `lacks ${stream.missing_scopes.join(", ")}` : "";
  const own = withdrawals.filter((withdrawal) => withdrawal.stream === stream.stream);
  const more = own.length > 3 ? `and ${own.length - 3} more withdrawals` : "";
  const offset = stream.live_offset_ms === null ? "" : `websocket ${stream.live_offset_ms} ms off REST`;
  const remark = [scopes, stream.last_error ?? "", ...own.slice(0, 3).map(withdrawalRemark), more, offset]
    .filter(Boolean)
    .join(" · ");
  const covered = stream.from_time
    ? `${minuteOf(stream.from_time).slice(0, 10)} → ${minuteOf(stream.to_time)}`
    : "";
  const age = stream.newest_age_s === null ? "–" : duration(stream.newest_age_s);
  const ranges = (number: number) => (number > 0 ? brief(number) : "–");
  return element(
    "tr",
    { "data-stream": stream.stream, ...(stream.rows === 0 && !remark ? { className: "faint" } : {}) },
    element("td", {}, title(stream.stream)),
    cell("number age", age),
    element("td", { className: "number", title: count(stream.rows) }, brief(stream.rows)),
    cell("wide faint", covered),
    ...gapStates.map((state) => cell("number", ranges(stream[state]))),
    cell("remark", remark),
  );
}

// ---- what is missing

const DEFAULT_PARTS = 8;
let showAllMissing = false;
let missing: GapSummaryResult | undefined;

function showMissing(answer: GapSummaryResult): void {
  missing = answer;
  const { open, lost, parts, lines } = answer;
  byId("missing").hidden = parts.length === 0;
  byId("nothing-missing").hidden = parts.length > 0;
  setText("nothing-missing", lines > 0 ? "Nothing is missing." : "Nothing is selected yet.");
  const left = open + lost - parts.length;
  const more = left > 0 ? `, the longest ${count(parts.length)} are listed` : "";
  setText("missing-note", open + lost > 0 ? `series: ${count(open)} open, ${count(lost)} lost${more}` : "");
  readAt.set("missing-age", answer.generated_at);
  const shown = showAllMissing ? parts : parts.slice(0, DEFAULT_PARTS);
  setRows("missing", shown.map(missingRow));
  byId("more-missing").hidden = shown.length === parts.length;
  setText("more-missing", `Show more (${count(parts.length - shown.length)})`);
}

function missingRow(part: GapSummary): HTMLTableRowElement {
  const name = part.name ?? part.index_id ?? "everything";
  const family = [title(part.stream), part.index_type].filter(Boolean).join(" · ");
  const ranges = part.ranges > 1 ? [element("br"), soft(`${brief(part.ranges)} ranges`)] : [];
  return element(
    "tr",
    {},
    element("td", { className: "series", title: name }, name, element("br"), soft(family)),
    element(
      "td",
      {},
      element("i", { className: "mark", "data-state": part.state }),
      part.state,
      element("br"),
      soft(part.reason),
    ),
    cell("number", duration(part.seconds), ...ranges),
    cell("wide faint", `${minuteOf(part.from_time)} → ${minuteOf(part.to_time)}`),
    cell("wide faint", minuteOf(part.lost_at) || "–"),
  );
}

const daemon = poll({
  kind: "daemon",
  what: "the daemon’s state",
  seconds: 2,
  show: showDaemon,
  onFailure: () => {
    byId("state").dataset.tone = "ill";
  },
});
const status = poll({ kind: "status", what: "the streams", seconds: 5, show: showStatus });
const gaps = poll({ kind: "missing", what: "the gaps", seconds: 20, show: showMissing });
const coverage = startCoverage((time) => readAt.set("coverage-age", time));
rereadOnNews(2, [daemon, status, gaps, coverage]);

byId("more-missing").addEventListener("click", () => {
  showAllMissing = true;
  if (missing) showMissing(missing);
});
