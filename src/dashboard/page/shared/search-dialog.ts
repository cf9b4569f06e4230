// “/” on any page searches series, pairs, assets and relations. The results are links.

import type { SearchMatch } from "../../../model/answers/page-address.ts";
import { throttle } from "./live.ts";
import { byId, describeError, element, fetchJson } from "./page-base.ts";

const dialog = byId("search-dialog", HTMLDialogElement);
const input = byId("search-text", HTMLInputElement);
const list = byId("search-results");
/** The daemon refuses a request for each key of a fast typist. */
const TYPING_SECONDS = 0.2;
let lastRequest = 0;

const links = () => [...list.querySelectorAll("a")];
const activeLink = () => links().find((link) => link.getAttribute("aria-selected") === "true");

function activate(next: number): void {
  const all = links();
  const active = all[(next + all.length) % all.length];
  for (const link of all) link.setAttribute("aria-selected", String(link === active));
  if (!active) return void input.removeAttribute("aria-activedescendant");
  input.setAttribute("aria-activedescendant", active.id);
  active.scrollIntoView({ block: "nearest" });
}

function show(matches: readonly SearchMatch[]): void {
  let group = "";
  list.replaceChildren(
    ...matches.flatMap((match, i) => {
      const link = element(
        "a",
        {
          id: `search-result-${i}`,
          role: "option",
          tabindex: -1,
          href: match.href,
          "aria-selected": "false",
        },
        element("b", {}, match.name),
        element("span", { className: "soft" }, match.note),
      );
      const heading = match.group === group ? [] : [element("div", { className: "soft group" }, match.group)];
      group = match.group;
      return [...heading, link];
    }),
  );
  if (matches.length === 0) showNote(`Nothing is named “${input.value.trim()}”.`);
  activate(0);
}

function showNote(text: string): void {
  list.replaceChildren(element("div", { className: "soft group" }, text));
}

async function search(): Promise<void> {
  const request = ++lastRequest;
  try {
    const matches = await fetchJson("search", { name: input.value.trim() });
    // Responses may arrive out of order; only the last request counts.
    if (request === lastRequest) show(matches);
  } catch (error) {
    if (request === lastRequest) showNote(`Could not search: ${describeError(error)}.`);
  }
}

export function openSearch(): void {
  if (dialog.open) return;
  input.value = "";
  list.replaceChildren();
  dialog.showModal();
  void search();
}

/** Keys belong to whatever is typed into. */
export function isTyping(event: Event): boolean {
  // The editor is in a shadow root, which hides it from `target`.
  const [target] = event.composedPath();
  // The input of a closed dialog keeps the focus for a moment.
  return (
    target instanceof HTMLElement &&
    target.checkVisibility() &&
    (target.isContentEditable || target.matches("input:not([type=radio], [type=checkbox]), select, textarea"))
  );
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
  event.preventDefault();
  openSearch();
});
byId("search-open").addEventListener("click", openSearch);
input.addEventListener(
  "input",
  throttle(TYPING_SECONDS, () => void search()),
);
input.addEventListener("keydown", (event) => {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  const active = activeLink();
  if (step !== 0) activate((active ? links().indexOf(active) : -1) + step);
  else if (event.key === "Enter") active?.click();
  else return;
  event.preventDefault();
});
dialog.addEventListener("click", ({ target }) => {
  // A click beside the box hits the dialog itself. A link to the same page only changes its hash.
  if (target === dialog || (target instanceof Element && target.closest("a"))) dialog.close();
});
