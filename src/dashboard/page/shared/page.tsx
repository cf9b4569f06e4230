// The parts of a page. `mountPage(<Exchanges />)` renders into the layout; a page is a <Sheet> of <Card>s.

import { type ComponentChildren, render, type VNode } from "preact";
import { useEffect } from "preact/hooks";
import { nameToSlug, pagePath } from "../../../model/answers/page-address.ts";
import { findClosestWords } from "../../../model/did-you-mean.ts";
import { Field } from "./combobox.tsx";
import "./layout.tsx";
import { Reading, type ReadingProps } from "./live.tsx";
import { byId } from "./page-base.ts";

const MAX_NEAR_NAMES = 5;

export const mountPage = (page: VNode): void => render(page, byId("main"));

interface PageProps {
  readonly name: string;
  readonly title: ComponentChildren;
  /** Of the window, unless it is the title. */
  readonly windowTitle?: string;
  readonly note?: ComponentChildren;
  readonly instead?: ComponentChildren;
  readonly children?: ComponentChildren;
}

export function Sheet({ name, title, windowTitle, note, instead, children }: PageProps) {
  useEffect(() => {
    document.title = windowTitle ?? `${title} · mds-sync`;
  }, [title, windowTitle]);
  return (
    <>
      <div class="page-head row spread">
        <h1 id={`${name}-title`}>{title}</h1>
        <p class="soft" id={`${name}-note`} role="status" children={note} />
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
          {note !== undefined && <p class="soft" id={`${name}-note`} children={note} />}
          {controls}
        </div>
      )}
      {isRead ? (
        <Reading {...reading} of={of} children={children as ReadingProps<T>["children"]} />
      ) : (
        (children as ComponentChildren)
      )}
    </section>
  );
}

interface FactProps {
  readonly label: string;
  readonly figure: ComponentChildren;
  readonly note?: string | null | undefined;
  readonly name?: string;
}

export function Facts({ id, of }: { id: string; of: readonly FactProps[] }) {
  return (
    <div class="facts row" id={id}>
      {of.map(({ label, figure, note, name }, at) => (
        <div key={`${at} ${label}`} data-fact={name}>
          <span class="soft">{label}</span>
          <b>{figure}</b>
          <span class="soft">{note}</span>
        </div>
      ))}
    </div>
  );
}

/** A sample of a colour, or of what `style` says. */
export function Mark({ state, style }: { state: string; style?: Styles }) {
  const background = `var(--${state}, var(--soft))`;
  return <span class="mark" data-state={state} style={{ background, ...style }} />;
}

type Styles = Readonly<Record<string, string>>;

/** What the marks stand for, by their states. */
export function Legend({ of }: { of: Readonly<Record<string, string | Styles>> }) {
  return (
    <ul class="row small" aria-label="Legend">
      {Object.entries(of).map(([state, meant]) => (
        <li key={state}>
          <Mark state={state} {...(typeof meant === "string" ? {} : { style: meant })} />
          {typeof meant === "string" ? meant : state}
        </li>
      ))}
    </ul>
  );
}

const toneColours = { well: "covered", busy: "open", ill: "lost" };
export function Dot({ tone }: { tone: keyof typeof toneColours }) {
  return <span class="dot" data-tone={tone} style={{ background: `var(--${toneColours[tone]})` }} />;
}

interface TrendLineProps {
  /** To the right from 0 to 1, and up as far as the values go. */
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Of the values at least. */
  readonly range: readonly [low: number, high: number];
  readonly label: string;
  readonly tone?: string;
  readonly hasArea?: boolean;
}

export function TrendLine({ points, range, label, tone = "", hasArea = false }: TrendLineProps) {
  const [width, height] = [110, 30];
  const values = [...range, ...points.map(([, y]) => y)];
  const low = Math.min(...values);
  const scale = (height - 4) / (Math.max(...values) - low || 1);
  const line = points
    .map(([x, y]) => `${(x * width).toFixed(1)},${(height - 2 - (y - low) * scale).toFixed(1)}`)
    .join("L");
  const box = { width, height, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none" };
  const pen = { "stroke-width": 1.5, "stroke-linejoin": "round" } as const;
  return (
    <svg {...box} class={tone} role="img" aria-label={label} fill="none" stroke="currentcolor">
      {hasArea && (
        <path
          d={line && `M0,${height}L${line}L${width},${height}Z`}
          {...{ fill: "currentcolor", stroke: "none" }}
          opacity="0.16"
        />
      )}
      <path d={line && `M${line}`} vector-effect="non-scaling-stroke" {...pen} />
    </svg>
  );
}

type ChosenProps<V> = { id: string; label: string; value: V; onChoose: (value: V) => void };

interface ChoiceProps extends ChosenProps<string> {
  readonly options: readonly (readonly [value: string, text: string])[];
}

export function Choice({ id, label, value, options, onChoose }: ChoiceProps) {
  return (
    <Field id={id} label={label}>
      <select id={id} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {options.map(([one, text]) => (
          <option key={one} value={one} children={text} />
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
    <label class="soft">
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
  /** Names that are nearly the same, on this page. */
  readonly near?: readonly string[] | undefined;
  readonly page?: Parameters<typeof pagePath>[0];
}

export function EmptyPage({ text, near = [], page = "assets" }: EmptyPageProps) {
  return (
    <section class="card" id="empty" aria-label="Nothing to show">
      <h2 id="empty-text">
        {near.length > 0 ? `${text} Similar:` : text}
        {near.map((name) => [" ", <a href={pagePath(page, name)}>{name}</a>])}
      </h2>
      <p class="soft">
        <a href="/sync">The sync page</a> shows what the daemon is doing, and why data may be missing.
      </p>
    </section>
  );
}

type UnknownNameProps = Pick<EmptyPageProps, "page"> & Readonly<Record<"name" | "what", string>>;

/** In place of the cards about one thing, if the address names another. */
export function UnknownName({ page, name, known, what }: UnknownNameProps & { known: readonly string[] }) {
  const near = findClosestWords(name, known.map(nameToSlug)).slice(0, MAX_NEAR_NAMES);
  const text = known.length > 0 ? `No ${what} are synced of “${name}”.` : `No ${what} are synced yet.`;
  return <EmptyPage {...{ text, near, page }} />;
}
