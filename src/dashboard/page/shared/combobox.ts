// A field with a list of what its text finds: type, then choose with the arrow keys and Enter, or a tap.

import { TYPING_SECONDS, throttle } from "./live.ts";
import { describeError, element } from "./page-base.ts";

interface ComboboxOptions<T> {
  readonly input: HTMLInputElement;
  readonly list: HTMLElement;
  readonly find: (text: string) => Promise<readonly T[]>;
  /** What the list shows; each `[role=option]` in it stands for one of what was found, in this order. */
  readonly show: (found: readonly T[], text: string) => readonly Node[];
  /** Whether Enter alone chooses the first one. */
  readonly isFirstActive?: (first: T) => boolean;
  /** After a click or Enter; links need none. */
  readonly choose?: (one: T) => void;
}

interface Combobox {
  /** Finds what the text in the field names now. */
  readonly search: () => void;
  /** Forgets keys that wait for an answer. */
  readonly close: () => void;
}

export function combobox<T>({
  input,
  list,
  find,
  show,
  isFirstActive = () => true,
  choose = () => {},
}: ComboboxOptions<T>): Combobox {
  let found: readonly T[] = [];
  let active = -1;
  /** The last request while the list is open; without a text if it failed. */
  let asked: { text: string | undefined; readonly answer: Promise<void> } | undefined;

  const typed = () => input.value.trim();
  const options = () => [...list.querySelectorAll<HTMLElement>("[role=option]")];
  const activate = (next: number) => {
    active = next;
    const all = options();
    for (const [i, option] of all.entries()) option.setAttribute("aria-selected", String(i === active));
    input.setAttribute("aria-activedescendant", all[active]?.id ?? "");
    all[active]?.scrollIntoView({ block: "nearest" });
  };
  const open = (matches: readonly T[], nodes: readonly Node[]) => {
    found = matches;
    list.replaceChildren(...nodes);
    for (const [i, option] of options().entries()) option.id = `${list.id}-${i}`;
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    activate(matches[0] !== undefined && isFirstActive(matches[0]) ? 0 : -1);
  };
  const close = () => {
    asked = undefined;
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    activate(-1);
  };
  const search = () => {
    const text = typed();
    const request = {
      text: text as string | undefined,
      answer: find(text).then(
        // Responses may arrive out of order; only the last request counts.
        (matches) => void (request === asked && open(matches, show(matches, text))),
        (error: unknown) => {
          request.text = undefined;
          const note = element(
            "div",
            { className: "soft none" },
            `Could not search: ${describeError(error)}.`,
          );
          if (request === asked) open([], [note]);
        },
      ),
    };
    asked = request;
  };
  const searchTyped = () => {
    if (asked && asked.text !== typed()) search();
  };

  input.addEventListener("input", throttle(TYPING_SECONDS, searchTyped));
  input.addEventListener("keydown", async (event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0 && event.key !== "Enter") return;
    event.preventDefault();
    // A fast typist is ahead of the answers: the key is about what the text in the field will find.
    searchTyped();
    const request = asked;
    await request?.answer;
    if (!request || request !== asked || request.text !== typed()) return;
    if (step === 0) options()[active]?.click();
    else if (found.length > 0)
      activate((Math.max(active, step < 0 ? 0 : -1) + step + found.length) % found.length);
  });
  // The input keeps the focus, so that the list stays open until the click.
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", ({ target }) => {
    const option = target instanceof Element && target.closest<HTMLElement>("[role=option]");
    const one = option ? found[options().indexOf(option)] : undefined;
    if (one !== undefined) choose(one);
  });
  return { search, close };
}
