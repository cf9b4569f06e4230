// The parts of a page. `mountPage(<Exchanges />)` renders into the layout; a page is a <PageHead>, then <Card>s, or an <EmptyPage>.

import { type ComponentChildren, render, type VNode } from "preact";
import { useEffect, useReducer } from "preact/hooks";
import { nameToSlug, pagePath } from "../../../model/answers/page-address.ts";
import { findClosestWords } from "../../../model/did-you-mean.ts";
import { watchTheme } from "./layout.ts";
import { Reading, type ReadingProps } from "./live-poll.tsx";
import { byId } from "./page-base.ts";

const MAX_NEAR_NAMES = 5;

export function mountPage(page: VNode): void {
  render(page, byId("main"));
}

const media = matchMedia("(max-width: 760px)");
/** Whether the window is as narrow as a phone. */
export function usePhone(): boolean {
  const [, redraw] = useReducer((times: number) => times + 1, 0);
  useEffect(() => {
    const listener = () => redraw(undefined);
    media.addEventListener("change", listener);
    return () => media.removeEventListener("change", listener);
  }, []);
  return media.matches;
}

/** Counts how often colours or the width have changed: a canvas does not follow the style sheet. */
export function useRedraws(): number {
  const [redraws, redraw] = useReducer((times: number, _: undefined) => times + 1, 0);
  useEffect(() => {
    let width = innerWidth;
    const onResize = () => {
      if (width !== innerWidth) redraw(undefined);
      width = innerWidth;
    };
    window.addEventListener("resize", onResize);
    const end = watchTheme(() => redraw(undefined));
    return () => {
      window.removeEventListener("resize", onResize);
      end();
    };
  }, []);
  return redraws;
}

interface PageHeadProps {
  /** The ids are `NAME-title` and `NAME-note`. */
  readonly name: string;
  readonly title: string;
  /** What stands beside the title. */
  readonly subtitle?: string;
  readonly children?: ComponentChildren;
}

/** The heading, which is the title of the window too, with what is said beside it. */
export function PageHead({ name, title, subtitle, children }: PageHeadProps) {
  useEffect(() => {
    document.title = `${title} · mds-sync`;
  }, [title]);
  return (
    <div class="page-head">
      <h1>
        <span id={`${name}-title`}>{title}</span>
        {subtitle && <span class="soft">{subtitle}</span>}
      </h1>
      <p class="soft" id={`${name}-note`} role="status">
        {children}
      </p>
    </div>
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
  const { name, title, label, note, controls, of, room, isQuiet, children } = props;
  const labelled = title === undefined ? { "aria-label": label } : { "aria-labelledby": `${name}-title` };
  return (
    <section class="card" {...labelled}>
      {title !== undefined && (
        <div class="card-head">
          <h2 id={`${name}-title`}>{title}</h2>
          {note !== undefined && (
            <p class="soft" id={`${name}-note`}>
              {note}
            </p>
          )}
          {controls}
        </div>
      )}
      {of && typeof children === "function" ? (
        <Reading of={of} {...(room && { room })} isQuiet={isQuiet}>
          {children as ReadingProps<T>["children"]}
        </Reading>
      ) : (
        children
      )}
    </section>
  );
}

interface FactProps {
  readonly label: string;
  readonly note?: string;
  readonly name?: string;
  readonly children: ComponentChildren;
}

/** A figure with its label and a note. */
export function Fact({ label, note = "", name, children }: FactProps) {
  return (
    <div class="fact" data-fact={name}>
      <span class="soft">{label}</span>
      {children}
      <span class="soft">{note}</span>
    </div>
  );
}

interface ChoiceProps {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  /** By value: what is shown. */
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChoose: (value: string) => void;
}

/** A select with its label. */
export function Choice({ id, label, value, options, onChoose }: ChoiceProps) {
  return (
    <div class="box">
      <label class="soft" for={id}>
        {label}
      </label>{" "}
      <select id={id} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {options.map(([one, text]) => (
          <option key={one} value={one} selected={one === value}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

interface SearchFieldProps {
  readonly label: string;
  readonly value: string;
  readonly onSearch: (text: string) => void;
}

/** The field that a table is searched with. */
export function SearchField({ label, value, onSearch }: SearchFieldProps) {
  return (
    <input
      id="search"
      type="search"
      autocomplete="off"
      autocapitalize="off"
      spellcheck={false}
      placeholder={label}
      aria-label={label}
      value={value}
      onInput={(event) => onSearch(event.currentTarget.value)}
    />
  );
}

interface NearName {
  readonly label: string;
  readonly href: string;
}

/** What is shown in place of the cards, with links to near names. */
export function EmptyPage({ text, near = [] }: { text: string; near?: readonly NearName[] }) {
  return (
    <section class="card" id="empty" aria-label="Nothing to show">
      <p class="empty-text" id="empty-text">
        {near.length > 0 ? `${text} Similar:` : text}
        {near.map(({ label, href }) => (
          <>
            {" "}
            <a href={href}>{label}</a>
          </>
        ))}
      </p>
      <p class="soft">
        <a href="/sync">The sync page</a> shows what the daemon is doing, and why data may be missing.
      </p>
    </section>
  );
}

interface UnknownPageProps {
  readonly page: Parameters<typeof pagePath>[0];
  /** “No quotes are synced of”. */
  readonly what: string;
  /** In the address. */
  readonly name: string;
  readonly known: readonly string[];
  /** What is said if nothing is known at all. */
  readonly none: string;
}

/** Says that nothing has the name in the address, with names that are nearly the same. */
export function UnknownPage({ page, what, name, known, none }: UnknownPageProps) {
  if (known.length === 0) return <EmptyPage text={none} />;
  const near = findClosestWords(name, known.map(nameToSlug)).slice(0, MAX_NEAR_NAMES);
  return (
    <EmptyPage
      text={`${what} “${name}”.`}
      near={near.map((label) => ({ label, href: pagePath(page, label) }))}
    />
  );
}
