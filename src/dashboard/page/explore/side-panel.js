// The starting points beside the editor: relations with their columns, the cookbook's questions, and earlier queries.

import cookbook from "../../../../docs/cookbook.md";
import { byId, element } from "../shared/page-base.js";
import { parseCookbook } from "./cookbook.js";

const HISTORY_KEY = "explore-history";
const MAX_HISTORY = 50;
const HISTORY_TITLE_CHARS = 120;

export const questions = parseCookbook(cookbook);

/** Tabs with the arrow keys, as a screen reader expects them. */
export function wireTabs(list, onSelect) {
  const tabs = () => [...list.querySelectorAll("[role=tab]:not([hidden])")];
  const select = (tab) => {
    for (const each of tabs()) {
      each.setAttribute("aria-selected", String(each === tab));
      each.tabIndex = each === tab ? 0 : -1;
    }
    onSelect(tab);
  };
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) select(tab);
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const all = tabs();
    const next = all[(all.indexOf(event.target) + step + all.length) % all.length];
    event.preventDefault();
    next.focus();
    select(next);
  });
  return { select };
}

function matches({ name, columns }, text) {
  return name.includes(text) || columns.some((column) => column.name.includes(text));
}

/** Lists the relations; a relation opens to its columns. */
export function showRelations(groups, { onSelect, onInsert }) {
  const draw = () => {
    const text = byId("find-relation").value.trim().toLowerCase();
    const shown = groups
      .map((group) => ({ ...group, relations: group.relations.filter((one) => matches(one, text)) }))
      .filter(({ relations }) => relations.length > 0);
    byId("relation-list").replaceChildren(
      ...shown.flatMap(({ title, relations }) => [
        element("h2", {}, title),
        ...relations.map((relation) => relationItem(relation, text, { onSelect, onInsert })),
      ]),
      ...(shown.length === 0 ? [element("p", { className: "soft empty" }, "Nothing has this name.")] : []),
    );
  };
  byId("find-relation").addEventListener("input", draw);
  draw();
}

function relationItem({ name, summary, columns }, text, { onSelect, onInsert }) {
  const details = element("details", { "data-relation": name });
  const query = element("button", { type: "button", className: "plain small" }, "Query");
  query.addEventListener("click", () => onSelect(`SELECT * FROM ${name} LIMIT 100`));
  details.append(element("summary", {}, name), element("p", { className: "soft" }, summary, " ", query));
  const fill = () => {
    if (details.querySelector("dl")) return;
    const list = element("dl");
    for (const column of columns) {
      const insert = element(
        "button",
        { type: "button", className: "plain small", title: "Insert" },
        column.name,
      );
      insert.addEventListener("click", () => onInsert(column.name));
      list.append(
        element("dt", {}, insert, element("span", { className: "soft" }, ` ${column.type}`)),
        element("dd", {}, column.meaning),
      );
    }
    details.append(list);
  };
  details.addEventListener("toggle", () => details.open && fill());
  if (text !== "" && !name.includes(text)) details.open = true;
  return details;
}

export function showQuestions(onSelect) {
  byId("question-list").replaceChildren(
    ...questions.map(({ title, sql }) => {
      const button = element("button", { type: "button" }, title.replace(/^\d+\. /, ""));
      button.addEventListener("click", () => onSelect(sql));
      return element("li", {}, button);
    }),
  );
}

function readHistory() {
  try {
    const list = JSON.parse(localStorage.getItem(HISTORY_KEY) ?? "[]");
    return Array.isArray(list) ? list.filter(({ sql }) => typeof sql === "string") : [];
  } catch {
    return [];
  }
}

export function rememberQuery(sql, note) {
  const entry = { sql, note, at: new Date().toISOString() };
  const list = [entry, ...readHistory().filter((one) => one.sql !== sql)].slice(0, MAX_HISTORY);
  try {
    localStorage.setItem(HISTORY_KEY, JSON.stringify(list));
  } catch {
    // Storage is blocked or full: the history ends with the page.
  }
}

export function showHistory(onSelect) {
  const list = readHistory();
  byId("no-history").hidden = list.length > 0;
  byId("history-list").replaceChildren(
    ...list.map(({ sql, note, at }) => {
      const title = sql.replaceAll(/\s+/g, " ").slice(0, HISTORY_TITLE_CHARS);
      const button = element("button", { type: "button", title: sql }, element("code", {}, title));
      button.addEventListener("click", () => onSelect(sql));
      const when = String(at).slice(0, 16).replace("T", " ");
      return element("li", {}, button, element("span", { className: "soft" }, `${when} · ${note ?? ""}`));
    }),
  );
  return list;
}
