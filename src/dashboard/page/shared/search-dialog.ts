// “/” on any page searches series, pairs, exchanges, assets and relations. The results are links.

import type { SearchMatch } from "../../../model/answers/page-address.ts";
import { combobox } from "./combobox.ts";
import { byId, element, fetchJson, soft } from "./page-base.ts";

const dialog = byId("search-dialog", HTMLDialogElement);
const input = byId("search-text", HTMLInputElement);
const { search, close } = combobox({
  input,
  list: byId("search-results"),
  find: (name) => fetchJson("search", { name }),
  show: (matches, text) =>
    matches.length === 0
      ? [element("div", { className: "soft none" }, `Nothing is named “${text}”.`)]
      : matches.flatMap((match, i) => [
          ...(match.group === matches[i - 1]?.group
            ? []
            : [element("div", { className: "soft group" }, match.group)]),
          toLink(match),
        ]),
});

function toLink({ href, name, note }: SearchMatch): HTMLElement {
  return element("a", { role: "option", tabindex: -1, href }, element("b", {}, name), soft(note));
}

function openSearch(): void {
  if (dialog.open) return;
  input.value = "";
  dialog.showModal();
  search();
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
dialog.addEventListener("close", () => {
  // The event comes later than the key: the dialog may be open again.
  if (!dialog.open) close();
});
dialog.addEventListener("click", ({ target }) => {
  // A click beside the box hits the dialog itself. A link to the same page only changes its hash.
  if (target === dialog || (target instanceof Element && target.closest("a"))) dialog.close();
});
