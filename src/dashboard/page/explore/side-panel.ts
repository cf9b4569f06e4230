// The starting points beside the editor: relations with their columns, the cookbook's questions, and earlier queries.

import cookbook from "../../../../docs/cookbook.md";
import type { ApiAnswers } from "../../api-answers.ts";
import { byId, element, soft } from "../shared/page-base.ts";
import { parseCookbook } from "./cookbook.ts";

const HISTORY_KEY = "explore-history";
const MAX_HISTORY = 50;
const HISTORY_TITLE_CHARS = 120;

export const questions = parseCookbook(cookbook);

/** Tabs with the arrow keys, as a screen reader expects them. */
export function wireTabs(list: HTMLElement, onSelect: (tab: HTMLElement) => void): void {
  const tabs = () => [...list.querySelectorAll<HTMLElement>("[role=tab]:not([hidden])")];
  const select = (tab: HTMLElement) => {
    for (const each of tabs()) {
      each.setAttribute("aria-selected", String(each === tab));
      each.tabIndex = each === tab ? 0 : -1;
    }
    onSelect(tab);
  };
  list.addEventListener("click", (event) => {
    const tab = tabs().find((each) => event.target instanceof Node && each.contains(event.target));
    if (tab) select(tab);
  });
  list.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const all = tabs();
    const at = event.target instanceof HTMLElement ? all.indexOf(event.target) : -1;
    const next = all[(at + step + all.length) % all.length];
    if (step === 0 || !next) return;
    event.preventDefault();
    next.focus();
    select(next);
  });
}

type SchemaGroups = ApiAnswers["schema"];
export type Relation = SchemaGroups[number]["relations"][number];
interface RelationActions {
  readonly onSelect: (sql: string) => void;
  readonly onInsert: (text: string) => void;
}

function matches({ name, columns }: Relation, text: string): boolean {
  return name.includes(text) || columns.some((column) => column.name.includes(text));
}

/** Lists the relations; a relation opens to its columns. */
export function showRelations(groups: SchemaGroups, actions: RelationActions): void {
  const input = byId("find-relation", HTMLInputElement);
  const draw = () => {
    const text = input.value.trim().toLowerCase();
    const shown = groups
      .map((group) => ({ ...group, relations: group.relations.filter((one) => matches(one, text)) }))
      .filter(({ relations }) => relations.length > 0);
    byId("relation-list").replaceChildren(
      ...shown.flatMap(({ title, relations }) => [
        element("h2", {}, title),
        ...relations.map((relation) => relationItem(relation, text, actions)),
      ]),
      ...(shown.length === 0 ? [element("p", { className: "soft empty" }, "Nothing has this name.")] : []),
    );
  };
  input.addEventListener("input", draw);
  draw();
}

function relationItem(
  { name, summary, columns }: Relation,
  text: string,
  { onSelect, onInsert }: RelationActions,
): HTMLElement {
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
      list.append(element("dt", {}, insert, soft(` ${column.type}`)), element("dd", {}, column.meaning));
    }
    details.append(list);
  };
  details.addEventListener("toggle", () => details.open && fill());
  if (text !== "" && !name.includes(text)) details.open = true;
  return details;
}

export function showQuestions(onSelect: (sql: string) => void): void {
  byId("question-list").replaceChildren(
    ...questions.map(({ title, sql }) => {
      const button = element("button", { type: "button" }, title.replace(/^\d+\. /, ""));
      button.addEventListener("click", () => onSelect(sql));
      return element("li", {}, button);
    }),
  );
}

/** A query that was run here. */
interface HistoryEntry {
  readonly sql: string;
  readonly note?: string;
  readonly at?: string;
}

function readHistory(): HistoryEntry[] {
  try {
    const list: unknown = JSON.parse(localStorage.getItem(HISTORY_KEY) ?? "[]");
    return Array.isArray(list)
      ? list.filter((one: Partial<HistoryEntry>) => typeof one.sql === "string")
      : [];
  } catch {
    return [];
  }
}

export const wasRun = (sql: string): boolean => readHistory().some((one) => one.sql === sql);

export function rememberQuery(sql: string, note: string): void {
  const entry = { sql, note, at: new Date().toISOString() };
  const list = [entry, ...readHistory().filter((one) => one.sql !== sql)].slice(0, MAX_HISTORY);
  try {
    localStorage.setItem(HISTORY_KEY, JSON.stringify(list));
  } catch {
    // Storage is blocked or full: the history ends with the page.
  }
}

export function showHistory(onSelect: (sql: string) => void): HistoryEntry[] {
  const list = readHistory();
  byId("no-history").hidden = list.length > 0;
  byId("history-list").replaceChildren(
    ...list.map(({ sql, note, at }) => {
      const title = sql.replaceAll(/\s+/g, " ").slice(0, HISTORY_TITLE_CHARS);
      const button = element("button", { type: "button", title: sql }, element("code", {}, title));
      button.addEventListener("click", () => onSelect(sql));
      const when = (at ?? "").slice(0, 16).replace("T", " ");
      return element("li", {}, button, soft(`${when} · ${note ?? ""}`));
    }),
  );
  return list;
}
