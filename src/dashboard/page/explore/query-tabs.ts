// Several statements side by side. They stay in this browser.

import { element } from "../shared/page-base.ts";

const KEY = "explore-tabs";
const MAX_TABS = 9;

interface QueryTabsOptions {
  readonly text: () => string;
  readonly onSelect: (sql: string) => void;
  /** The history has it. */
  readonly wasRun: (sql: string) => boolean;
}

function readTabs(): string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(stored) ? stored.filter((sql) => typeof sql === "string") : [];
  } catch {
    return [];
  }
}

/** What a statement reads, as its title. */
function titleOf(sql: string): string {
  return /\bfrom\s+(\w+)/i.exec(sql)?.[1] ?? (sql.trim() === "" ? "empty" : sql.trim().slice(0, 20));
}

export function queryTabs(list: HTMLElement, { text, onSelect, wasRun }: QueryTabsOptions) {
  const tabs = readTabs();
  let active = Math.max(0, tabs.length - 1);

  const save = () => {
    tabs[active] = text();
    try {
      localStorage.setItem(KEY, JSON.stringify(tabs));
    } catch {
      // Storage is blocked: the tabs last as long as the page.
    }
    draw();
  };
  const select = (next: number) => {
    active = next;
    onSelect(tabs[next] ?? "");
    save();
  };
  const draw = () => {
    list.replaceChildren(
      ...tabs.map((sql, i) => {
        const tab = element(
          "button",
          { type: "button", "aria-pressed": String(i === active), title: sql.slice(0, 200) },
          titleOf(sql),
        );
        tab.addEventListener("click", () => {
          tabs[active] = text();
          select(i);
        });
        return tab;
      }),
      button("+", "New statement", tabs.length < MAX_TABS, () => {
        tabs[active] = text();
        tabs.push("");
        select(tabs.length - 1);
      }),
      button("×", "Close this statement", tabs.length > 1, () => {
        tabs.splice(active, 1);
        select(Math.max(0, active - 1));
      }),
    );
  };
  const button = (label: string, name: string, isShown: boolean, onClick: () => void) => {
    const made = element(
      "button",
      { type: "button", className: "plain", "aria-label": name, title: name },
      label,
    );
    made.hidden = !isShown;
    made.addEventListener("click", onClick);
    return made;
  };

  return {
    /** The statement to begin with: a linked one in a tab of its own, else the last one. */
    begin(linked: string | undefined): string | undefined {
      if (linked === undefined) return tabs[active];
      if (!tabs.includes(linked)) tabs.push(linked);
      // One that was run is found again in the history.
      const replaced = tabs.length > MAX_TABS ? tabs.slice(0, -1).findLastIndex(wasRun) : -1;
      if (replaced >= 0) tabs.splice(replaced, 1);
      active = tabs.indexOf(linked);
      return linked;
    },
    save,
  };
}
