// A search box for series: type a part of a name, choose with the arrow keys or a tap.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { SeriesMatch } from "../../../model/answers/heatmap.ts";
import { combobox } from "./combobox.ts";
import { element, fetchJson, soft } from "./page-base.ts";

/** Says that a name is unknown. */
export const describeUnknown = (name: string) => `No synced series is named “${name}”.`;

function toOption({ index_type, name, slug, has_ticks }: SeriesMatch): HTMLElement {
  const note = has_ticks ? index_type : `${index_type}, daily`;
  return element("div", { role: "option" }, element("b", {}, name || slug), soft(note));
}

function showOptions(series: readonly SeriesMatch[], text: string): HTMLElement[] {
  const isKnown = text === "" || (series[0]?.match ?? "similar") !== "similar";
  const unknown = `${describeUnknown(text)}${series.length > 0 ? " Similar:" : ""}`;
  return [...(isKnown ? [] : [element("div", { className: "soft none" }, unknown)]), ...series.map(toOption)];
}

interface SeriesBoxProps {
  readonly id: string;
  readonly label: string;
  readonly listLabel: string;
  readonly placeholder: string;
  /** The name that it shows while nobody types. */
  readonly name?: string;
  readonly onChoose: (series: SeriesMatch) => void;
}

export function SeriesBox({ id, label, listLabel, placeholder, name = "", onChoose }: SeriesBoxProps) {
  const [input, list] = [useRef<HTMLInputElement>(null), useRef<HTMLDivElement>(null)];
  const latest = useRef({ name, onChoose });
  latest.current = { name, onChoose };
  useEffect(() => {
    if (!input.current || !list.current) return;
    const { current: field } = input;
    const { search, close } = combobox<SeriesMatch>({
      ...{ input: field, list: list.current },
      find: (text) => fetchJson("series", { name: text }),
      show: showOptions,
      isFirstActive: ({ match }) => match !== "similar",
      choose: (series) => {
        latest.current.onChoose(series);
        field.blur();
      },
    });
    field.addEventListener("focus", () => {
      field.value = "";
      search();
    });
    field.addEventListener("blur", () => {
      close();
      field.value = latest.current.name;
    });
    field.addEventListener("keydown", ({ key }) => {
      if (key === "Escape") field.blur();
    });
  }, []);
  useLayoutEffect(() => {
    if (input.current && document.activeElement !== input.current) input.current.value = name;
  }, [name]);
  return (
    <div class="box">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="text"
        role="combobox"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-expanded="false"
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        placeholder={placeholder}
        ref={input}
      />
      <div id={`${id}-list`} class="series-list" role="listbox" aria-label={listLabel} hidden ref={list} />
    </div>
  );
}
