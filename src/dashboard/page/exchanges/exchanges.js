// One pair on all exchanges, compared with its index.

import "../shared/layout.js";
import { byId, element, fetchJson, poll, setText } from "../shared/page-base.js";
import { brief, countNoun, direction, duration, quote } from "../shared/text-format.js";

const POLL_SECONDS = 5;
const params = new URLSearchParams(location.search);
let pair = params.get("pair") ?? "";

/** Basis points between two prices; null if one is missing. */
export function basisPoints(value, reference) {
  return value === null || !(reference > 0) ? null : (value / reference - 1) * 10_000;
}

export function spreadOf({ bid, ask }) {
  return bid > 0 && ask > 0 ? ((ask - bid) / ((ask + bid) / 2)) * 10_000 : null;
}

const points = (value, isSigned = false) => {
  if (value === null) return "–";
  const sign = isSigned && value.toFixed(1) !== "0.0" ? (value > 0 ? "+" : "−") : value < 0 ? "−" : "";
  return `${sign}${Math.abs(value).toFixed(1)} bp`;
};

function deviationBar(deviation, largest) {
  const bar = element("span", { className: `bar ${direction(deviation)}` });
  const share = largest > 0 ? (Math.abs(deviation ?? 0) / largest) * 50 : 0;
  bar.style.width = `${share.toFixed(1)}%`;
  bar.style.left = `${(deviation < 0 ? 50 - share : 50).toFixed(1)}%`;
  return element(
    "td",
    { className: "deviation wide", "aria-hidden": "true" },
    element("span", { className: "track" }, bar),
  );
}

function show({ generated_at, index, quotes }) {
  const now = Date.parse(generated_at) * 1000;
  const rows = quotes.map((one) => ({
    ...one,
    spread: spreadOf(one),
    deviation: index ? basisPoints(one.last, index.price) : null,
    age: Math.max(0, (now - one.ts) / 1e6),
  }));
  const largest = rows.reduce((most, { deviation }) => Math.max(most, Math.abs(deviation ?? 0)), 0);
  setText("pair-title", pair);
  document.title = `${pair} · mds-sync`;
  byId("no-quotes").hidden = rows.length > 0;
  setText(
    "quotes-note",
    `${countNoun(rows.filter(({ is_live }) => is_live).length, "live exchange")} · ${generated_at.slice(0, 19).replace("T", " ")} UTC`,
  );
  showFacts(index, rows);
  byId("quotes").tBodies[0].replaceChildren(
    ...rows.map((row) => {
      const remark = row.is_live ? (row.is_stale ? "price has not moved" : "") : "no longer quoted";
      return element(
        "tr",
        { "data-exchange": row.exchange, ...(row.is_live ? {} : { className: "faint" }) },
        element(
          "td",
          {},
          element("b", {}, row.exchange),
          element("span", { className: "soft remark" }, remark ? ` ${remark}` : ""),
        ),
        element("td", { className: "number last" }, quote(row.last)),
        element("td", { className: "number wide" }, quote(row.bid)),
        element("td", { className: "number wide" }, quote(row.ask)),
        element("td", { className: "number spread" }, points(row.spread)),
        element("td", { className: `number off ${direction(row.deviation)}` }, points(row.deviation, true)),
        deviationBar(row.deviation, largest),
        element("td", { className: "number wide" }, row.volume === null ? "–" : brief(row.volume)),
        element("td", { className: "number" }, duration(row.age)),
      );
    }),
  );
}

function showFacts(index, rows) {
  const live = rows.filter(({ is_live }) => is_live);
  const bid = live.reduce((best, one) => (one.bid > (best?.bid ?? 0) ? one : best), undefined);
  const ask = live.reduce(
    (best, one) => (one.ask > 0 && one.ask < (best?.ask ?? Number.POSITIVE_INFINITY) ? one : best),
    undefined,
  );
  const facts = [
    ["Index", index ? quote(index.price) : "not synced", index?.source ?? ""],
    ["Best bid", bid ? quote(bid.bid) : "–", bid?.exchange ?? ""],
    ["Best ask", ask ? quote(ask.ask) : "–", ask?.exchange ?? ""],
    [
      "Across exchanges",
      bid && ask ? points(basisPoints(ask.ask, bid.bid), true) : "–",
      "best ask − best bid",
    ],
  ];
  byId("facts").replaceChildren(
    ...facts.map(([label, value, note]) =>
      element(
        "div",
        { className: "fact" },
        element("span", { className: "soft" }, label),
        element("b", {}, value),
        element("span", { className: "soft" }, note),
      ),
    ),
  );
}

function showPairs(pairs) {
  byId("pair").replaceChildren(
    ...pairs.map((one) => element("option", { value: one.pair }, `${one.pair} (${one.exchanges})`)),
  );
  if (!pairs.some((one) => one.pair === pair)) pair = pairs[0]?.pair ?? "";
  byId("pair").value = pair;
}

byId("controls").addEventListener("submit", (event) => event.preventDefault());
byId("pair").addEventListener("change", () => {
  pair = byId("pair").value;
  history.replaceState(null, "", `/exchanges?${new URLSearchParams({ pair })}`);
  void quotes.now();
});

const showError = (error) =>
  setText("quotes-note", error instanceof TypeError ? "The daemon does not answer." : error.message);
let hasPairs = false;
/** Pairs first: without one there is nothing to ask for. */
async function start() {
  if (hasPairs) return;
  showPairs(await fetchJson("/api/pairs"));
  hasPairs = pair !== "";
  if (!hasPairs) throw new Error("No exchange tickers are synced yet.");
}
await start().catch(showError);
const quotes = poll(
  () => `/api/quotes?${new URLSearchParams({ pair })}`,
  POLL_SECONDS,
  (answer) => (hasPairs ? show(answer) : start().catch(showError)),
  showError,
);
