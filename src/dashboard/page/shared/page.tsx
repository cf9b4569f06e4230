// The parts of a page. `mountPage(<Exchanges />)` renders into the layout; a page is a <Sheet> of <Card>s.

import { type ComponentChildren, render, type VNode } from "preact";
import { useEffect } from "preact/hooks";
import { nameToSlug, pagePath } from "../../../model/answers/page-address.ts";
import { findClosestWords } from "../../../model/did-you-mean.ts";
import { Field } from "./combobox.tsx";
import "./layout.tsx";
import { Reading, type ReadingProps } from "./live-poll.tsx";
import { byId } from "./page-base.ts";

const MAX_NEAR_NAMES = 5;

export const mountPage = (page: VNode): void => render(page, byId("main"));

interface PageProps {
  readonly name: string;
  readonly title: string;
  /** What stands beside the title. */
  readonly subtitle?: string;
  readonly note?: ComponentChildren;
  readonly instead?: ComponentChildren;
  readonly children?: ComponentChildren;
}

/** The heading, which is the title of the window too, with what is said beside it, and the cards. */
export function Sheet({ name, title, subtitle, note, instead, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · mds-sync`;
  }, [title]);
  return (
    <>
      <div class="page-head row spread">
        <h1>
          <span id={`${name}-title`}>{title}</span>
          {subtitle && <span class="soft">{subtitle}</span>}
        </h1>
        <p class="soft" id={`${name}-note`} role="status">
          {note}
        </p>
      </div>
      {instead || children}
    </>
  );
}

interface CardProps<T extends readonly unknown[]> extends Partial<Omit<ReadingProps<T>, "children">> {
  /** The ids are `NAME-title` and `NAME-note`. */
  readonly name: string;
  /** A card without a title has a label. */
  readonly title?: ComponentChildren;
  readonly label?: string;
  readonly note?: ComponentChildren;
  /** In place of a note: what can be chosen. */
  readonly controls?: ComponentChildren;
  /** Of what the card reads, if it has `of`. */
  readonly children: ComponentChildren | ReadingProps<T>["children"];
}

export function Card<T extends readonly unknown[]>(props: CardProps<T>) {
  const { name, title, label, note, controls, of, children, ...reading } = props;
  const labelled = title === undefined ? { "aria-label": label } : { "aria-labelledby": `${name}-title` };
  const isRead = of && typeof children === "function";
  return (
    <section class="card" {...labelled}>
      {title !== undefined && (
        <div class="card-head row spread">
          <h2 id={`${name}-title`}>{title}</h2>
          {note !== undefined && (
            <p class="soft" id={`${name}-note`}>
              {note}
            </p>
          )}
          {controls}
        </div>
      )}
      {isRead ? (
        <Reading {...reading} of={of}>
          {children as ReadingProps<T>["children"]}
        </Reading>
      ) : (
        (children as ComponentChildren)
      )}
    </section>
  );
}

interface FactProps {
  readonly label: string;
  readonly figure: ComponentChildren;
  readonly note?: string | undefined;
  readonly name?: string;
}

/** Figures with their labels above and a note below. */
export function Facts({ id, of }: { id: string; of: readonly FactProps[] }) {
  return (
    <div class="facts row" id={id}>
      {of.map(({ label, figure, note, name }, at) => (
        <div class="fact" key={`${at} ${label}`} data-fact={name}>
          <span class="soft">{label}</span>
          <b>{figure}</b>
          <span class="soft">{note}</span>
        </div>
      ))}
    </div>
  );
}

export function Mark({ state }: { state: string }) {
  return <i class="mark" data-state={state} style={{ background: `var(--${state}, var(--soft))` }} />;
}

const toneColours = { well: "covered", busy: "open", ill: "lost" };
export function Dot({ tone }: { tone: keyof typeof toneColours }) {
  return <span class="dot" style={{ background: `var(--${toneColours[tone]})` }} />;
}

interface TrendLineProps {
  /** From 0 to 1, to the right and up. */
  readonly points: readonly (readonly [x: number, y: number])[];
  readonly label: string;
  readonly tone?: string;
  readonly hasArea?: boolean;
}

export function TrendLine({ points, label, tone = "", hasArea = false }: TrendLineProps) {
  const [width, height] = [110, 30];
  const line = points
    .map(([x, y]) => `${(x * width).toFixed(1)},${(height - 2 - y * (height - 4)).toFixed(1)}`)
    .join("L");
  const box = { width, height, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none" };
  return (
    <svg {...box} class={`sparkline ${tone}`} role="img" aria-label={label}>
      {hasArea && <path class="area" d={line && `M0,${height}L${line}L${width},${height}Z`} />}
      <path d={line && `M${line}`} />
    </svg>
  );
}

interface ChosenProps<V> {
  readonly id: string;
  readonly label: string;
  readonly value: V;
  readonly onChoose: (value: V) => void;
}

interface ChoiceProps extends ChosenProps<string> {
  /** By value: what is shown. */
  readonly options: readonly (readonly [value: string, text: string])[];
}

export function Choice({ id, label, value, options, onChoose }: ChoiceProps) {
  return (
    <Field id={id} label={label}>
      <select id={id} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {options.map(([one, text]) => (
          <option key={one} value={one} selected={one === value}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

interface TabListProps<K extends string> extends ChosenProps<K> {
  readonly names: Readonly<Record<K, string>>;
  readonly isHidden?: (key: K) => boolean;
  /** The element that a tab shows. */
  readonly controls: string;
}

/** Tabs with the arrow keys, as a screen reader expects them. */
export function TabList<K extends string>(props: TabListProps<K>) {
  const { id, label, names, value, isHidden = () => false, controls, onChoose } = props;
  const keys = (Object.keys(names) as K[]).filter((key) => !isHidden(key));
  const onKeyDown = (event: KeyboardEvent & { currentTarget: HTMLElement }) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const next = keys[(keys.indexOf(value) + step + keys.length) % keys.length];
    if (step === 0 || next === undefined) return;
    event.preventDefault();
    onChoose(next);
    event.currentTarget.querySelector<HTMLElement>(`#tab-${next}`)?.focus();
  };
  return (
    <div class="tabs" id={id} role="tablist" aria-label={label} onKeyDown={onKeyDown}>
      {keys.map((key) => (
        <button
          key={key}
          {...{ type: "button", role: "tab", id: `tab-${key}`, "data-view": key }}
          {...{ "aria-controls": controls, "aria-selected": key === value }}
          tabIndex={key === value ? 0 : -1}
          onClick={() => onChoose(key)}
        >
          {names[key]}
        </button>
      ))}
    </div>
  );
}

export function SearchField({ id = "search", label, value, onChoose }: Partial<ChosenProps<string>>) {
  return (
    <input
      {...{ id, type: "search", placeholder: label, "aria-label": label, value }}
      {...{ autocomplete: "off", autocapitalize: "off", spellcheck: false }}
      onInput={(event) => onChoose?.(event.currentTarget.value)}
    />
  );
}

export function Checkbox(props: ChosenProps<boolean> & { readonly isDisabled?: boolean }) {
  const { id, label, value, isDisabled = false, onChoose } = props;
  return (
    <label class="check soft">
      <input
        {...{ type: "checkbox", id, checked: value, disabled: isDisabled }}
        onChange={(event) => onChoose(event.currentTarget.checked)}
      />
      {label}
    </label>
  );
}

interface EmptyPageProps {
  readonly text: string;
  readonly near?: readonly { readonly label: string; readonly href: string }[];
}

export function EmptyPage({ text, near = [] }: EmptyPageProps) {
  return (
    <section class="card" id="empty" aria-label="Nothing to show">
      <p class="empty-text" id="empty-text">
        {near.length > 0 ? `${text} Similar:` : text}
        {near.map(({ label, href }) => [" ", <a href={href}>{label}</a>])}
      </p>
      <p class="soft">
        <a href="/sync">The sync page</a> shows what the daemon is doing, and why data may be missing.
      </p>
    </section>
  );
}

interface UnknownNameProps extends Readonly<Record<"name" | "what", string>> {
  readonly page: Parameters<typeof pagePath>[0];
  readonly known: readonly string[];
}

/** In place of the cards about one thing, if the address names another; it leads to names that are nearly the same. */
export function UnknownName({ page, name, known, what }: UnknownNameProps) {
  const near = findClosestWords(name, known.map(nameToSlug)).slice(0, MAX_NEAR_NAMES);
  const text = known.length > 0 ? `No ${what} are synced of “${name}”.` : `No ${what} are synced yet.`;
  return <EmptyPage text={text} near={near.map((label) => ({ label, href: pagePath(page, label) }))} />;
}
