// The statements that were run, and several side by side. They stay in this browser.

import { readStored, store } from "../shared/page-base.ts";

const HISTORY_KEY = "explore-history";
const MAX_HISTORY = 50;

function readList(key: string): unknown[] {
  try {
    const stored: unknown = JSON.parse(readStored(key) ?? "[]");
    return Array.isArray(stored) ? stored : [];
  } catch {
    return [];
  }
}

export type HistoryEntry = { readonly sql: string; readonly note?: string; readonly at?: string };

export const readHistory = (): HistoryEntry[] =>
  (readList(HISTORY_KEY) as HistoryEntry[]).filter(({ sql }) => typeof sql === "string");

export const wasRun = (sql: string): boolean => readHistory().some((one) => one.sql === sql);

export function rememberQuery(sql: string, note: string): void {
  const entry = { sql, note, at: new Date().toISOString() };
  const others = readHistory().filter((one) => one.sql !== sql);
  store(HISTORY_KEY, JSON.stringify([entry, ...others].slice(0, MAX_HISTORY)));
}

const TABS_KEY = "explore-tabs";
const MAX_TABS = 9;

export type OpenTabs = { readonly list: readonly string[]; readonly active: number };

export function readTabs(): OpenTabs {
  const list = readList(TABS_KEY).filter((sql) => typeof sql === "string");
  return { list, active: Math.max(0, list.length - 1) };
}

/** Shows a linked statement, in a tab of its own. */
export function openLinked({ list }: OpenTabs, linked: string): OpenTabs {
  if (list.includes(linked)) return { list, active: list.indexOf(linked) };
  // One that was run is found again in the history.
  const replaced = list.length >= MAX_TABS ? list.findLastIndex(wasRun) : -1;
  const kept = list.filter((_, at) => at !== replaced);
  return { list: [...kept, linked], active: kept.length };
}

export const saveTabs = ({ list }: OpenTabs): void => store(TABS_KEY, JSON.stringify(list));

/** What a statement reads, as its title. */
const titleOf = (sql: string): string =>
  /\bfrom\s+(\w+)/i.exec(sql)?.[1] ?? (sql.trim() === "" ? "empty" : sql.trim().slice(0, 20));

type QueryTabsProps = { readonly tabs: OpenTabs; readonly onOpen: (tabs: OpenTabs) => void };

export function QueryTabs({ tabs: { list, active }, onOpen }: QueryTabsProps) {
  const action = (label: string, name: string, next: OpenTabs) => (
    <button type="button" aria-label={name} title={name} onClick={() => onOpen(next)} children={label} />
  );
  const closed = { list: list.toSpliced(active, 1), active: Math.max(0, active - 1) };
  return (
    <nav class="row card-head" id="statements" aria-label="Statements">
      {list.map((sql, at) => (
        <button
          key={at}
          type="button"
          {...{ "aria-pressed": at === active, class: at === active ? "" : "soft" }}
          title={sql.slice(0, 200)}
          onClick={() => onOpen({ list, active: at })}
        >
          {at === active ? <b>{titleOf(sql)}</b> : titleOf(sql)}
        </button>
      ))}
      {list.length < MAX_TABS && action("+", "New statement", { list: [...list, ""], active: list.length })}
      {list.length > 1 && action("×", "Close this statement", closed)}
    </nav>
  );
}
