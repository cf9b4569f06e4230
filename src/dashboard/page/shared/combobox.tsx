// A field with a list of what its text finds: type, then choose with the arrow keys and Enter, or a tap.
//   <SeriesBox id="series" label="Series" … />, and the <SearchDialog> that “/” opens on any page.

import { Fragment, type RenderableProps } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { SeriesMatch } from "../../../model/answers/heatmap.ts";
import { familyOf, type SearchMatch } from "../../../model/answers/page-address.ts";
import { TYPING_SECONDS, throttle } from "./live.tsx";
import { byId, describeError, fetchJson, useRedraw } from "./page-base.ts";

export function Field({ id, label, children }: Record<"id" | "label", string> & RenderableProps<object>) {
  return (
    <div class="box">
      <label class="small" for={id}>
        {label}
      </label>{" "}
      {children}
    </div>
  );
}

interface ComboboxProps<T> extends Readonly<Record<"id" | "label" | "placeholder", string>> {
  /** What the field has while nobody types. */
  readonly value?: string;
  readonly find: (text: string) => Promise<readonly T[]>;
  /** Said above what was found; without a word, Enter alone chooses the first one. */
  readonly describe: (text: string, found: readonly T[]) => string;
  readonly toOption: (one: T) => Pick<SearchMatch, "name" | "note"> & Partial<SearchMatch>;
  readonly onChoose: (one: T) => void;
}

interface Box<T> {
  /** The last request while the list is open; without a text if it failed. */
  asked?: { text: string | undefined; readonly answer: Promise<void> } | undefined;
  isOpen: boolean;
  note: string;
  found: readonly T[];
  active: number;
}

function Combobox<T>(props: ComboboxProps<T>) {
  const { id, label, placeholder, value = "", find, describe, toOption, onChoose } = props;
  const listId = `${id}-list`;
  const input = useRef<HTMLInputElement>(null);
  const { current: box } = useRef<Box<T>>({ isOpen: false, note: "", found: [], active: -1 });
  const redraw = useRedraw();
  const idOf = (at: number) => `${listId}-${at}`;
  const setBox = (change: Partial<Box<T>>) => {
    Object.assign(box, change);
    redraw();
  };
  const typed = () => input.current?.value.trim() ?? "";
  const search = () => {
    const text = typed();
    const show = (found: readonly T[], note: string) => {
      // Responses may arrive out of order; only the last request counts.
      if (request !== box.asked) return;
      setBox({ isOpen: true, found, note, active: note === "" && found.length > 0 ? 0 : -1 });
    };
    const request = {
      text: text as string | undefined,
      answer: find(text).then(
        (found) => show(found, describe(text, found)),
        (error: unknown) => {
          request.text = undefined;
          show([], `Could not search: ${describeError(error)}.`);
        },
      ),
    };
    box.asked = request;
  };
  const searchTyped = () => {
    if (box.asked && box.asked.text !== typed()) search();
  };
  const onInput = useMemo(() => throttle(TYPING_SECONDS, searchTyped), []);
  const onKeyDown = async (event: KeyboardEvent) => {
    if (event.key === "Escape") input.current?.blur();
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0 && event.key !== "Enter") return;
    event.preventDefault();
    // A fast typist is ahead of the answers: the key is about what the text in the field will find.
    searchTyped();
    const request = box.asked;
    await request?.answer;
    if (!request || request !== box.asked || request.text !== typed()) return;
    const { found, active } = box;
    // What was found just now is in the document after the next drawing.
    if (step === 0) setTimeout(() => document.getElementById(idOf(active))?.click());
    else if (found.length > 0)
      setBox({ active: (Math.max(active, step < 0 ? 0 : -1) + step + found.length) % found.length });
  };
  const onFocus = () => {
    if (!input.current || box.asked) return;
    input.current.value = "";
    search();
  };
  const onBlur = () => {
    // Another window has the focus for a while.
    if (!input.current || document.activeElement === input.current) return;
    input.current.value = value;
    setBox({ asked: undefined, isOpen: false, found: [], note: "", active: -1 });
  };
  useLayoutEffect(() => {
    if (input.current && document.activeElement !== input.current) input.current.value = value;
  }, [value]);
  useLayoutEffect(
    () => document.getElementById(idOf(box.active))?.scrollIntoView({ block: "nearest" }),
    [box.found, box.active],
  );
  return (
    <>
      <input
        {...{ id, type: "text", role: "combobox", placeholder, "aria-label": label, "aria-controls": listId }}
        {...{ autocomplete: "off", autocapitalize: "off", spellcheck: false, "aria-autocomplete": "list" }}
        {...{ onFocus, onBlur, onInput, onKeyDown }}
        {...{ "aria-expanded": box.isOpen, ref: input }}
        {...(box.active < 0 ? {} : { "aria-activedescendant": idOf(box.active) })}
      />
      <div
        {...{ id: listId, role: "listbox", "aria-label": label, hidden: !box.isOpen }}
        // The input keeps the focus, so that the list stays open until the click.
        onPointerDown={(event) => event.preventDefault()}
      >
        {box.note && <div class="small none">{box.note}</div>}
        {box.found.map((one, at) => {
          const { name, note, href, group } = toOption(one);
          const before = box.found[at - 1];
          return (
            <Fragment key={idOf(at)}>
              {group !== (before && toOption(before).group) && <div class="small">{group}</div>}
              <a
                {...{ id: idOf(at), role: "option", tabIndex: -1, href, "aria-selected": at === box.active }}
                {...{ onClick: () => onChoose(one) }}
              >
                <b>{name}</b>
                <span class="soft ellipsis">{note}</span>
              </a>
            </Fragment>
          );
        })}
      </div>
    </>
  );
}

export const describeUnknown = (name: string) => `No synced series is named “${name}”.`;

interface SeriesBoxProps extends Pick<ComboboxProps<SeriesMatch>, "id" | "label" | "placeholder" | "value"> {
  readonly heading: string;
  readonly onChoose: (series: SeriesMatch) => void;
}

export function SeriesBox({ heading, onChoose, ...own }: SeriesBoxProps) {
  return (
    <Field id={own.id} label={heading}>
      <Combobox<SeriesMatch>
        {...own}
        find={(name) => fetchJson("series", { name })}
        describe={(text, [first]) => {
          const isKnown = text === "" || (first?.match ?? "similar") !== "similar";
          return isKnown ? "" : `${describeUnknown(text)}${first ? " Similar:" : ""}`;
        }}
        toOption={({ name, slug, index_type, has_ticks }) => ({
          name: name || slug,
          note: has_ticks ? familyOf(index_type) : `${index_type}, daily`,
        })}
        onChoose={(series) => {
          onChoose(series);
          byId(own.id).blur();
        }}
      />
    </Field>
  );
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

/** “/” on any page searches series, pairs, exchanges, assets and relations. The results are links. */
export function SearchDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const close = () => dialog.current?.close();
  // A click beside the box hits the dialog itself.
  const onClick = ({ target }: Event) => target === dialog.current && close();
  useLayoutEffect(() => {
    const open = () => void (dialog.current?.open || dialog.current?.showModal());
    byId("search-open").addEventListener("click", open);
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
      event.preventDefault();
      open();
    });
  }, []);
  return (
    <dialog {...{ id: "search-dialog", "aria-label": "Search", ref: dialog, onClick }}>
      <Combobox
        id="search-text"
        label="Series, pairs, exchanges, assets, relations"
        placeholder="Series, pairs, exchanges, assets, relations"
        find={(name) => fetchJson("search", { name })}
        describe={(text, found) => (found.length > 0 ? "" : `Nothing is named “${text}”.`)}
        toOption={(match) => match}
        onChoose={close}
      />
    </dialog>
  );
}
