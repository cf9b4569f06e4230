// The heat map: one strip per series, with one column per hour, day or month and the fractions of the states stacked in each.

import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  type CellRun,
  cellStates,
  type HeatmapGroup,
  type HeatmapResult,
} from "../../../model/answers/heatmap.ts";
import { pagePath } from "../../../model/answers/page-address.ts";
import { useAddress } from "../shared/address.ts";
import { cssColour } from "../shared/layout.ts";
import { TYPING_SECONDS } from "../shared/live.ts";
import { type LiveAnswer, Reading, useLivePoll, useThrottled } from "../shared/live-poll.tsx";
import { Card, useRedraws } from "../shared/page.tsx";
import { count, countNoun, title } from "../shared/text-format.ts";
import { axis, describeCell, expand, type HeatmapCell, summarize } from "./heat-map.ts";

interface Filter {
  readonly name: string;
  readonly onlyProblems: boolean;
}

const isFiltered = ({ name, onlyProblems }: Filter) => name !== "" || onlyProblems;

function describeFilter({ groups }: HeatmapResult, filter: Filter): string {
  if (!isFiltered(filter)) return "";
  const found = groups.reduce((sum, { matches }) => sum + matches, 0);
  if (found > 0) return `${countNoun(found, "line")} found`;
  if (filter.name === "") return "No problems.";
  return `No ${filter.onlyProblems ? "incomplete " : ""}series has “${filter.name}” in its name.`;
}

/**
 * Draws at the resolution of the canvas. Every state that occurs gets at least one pixel: one lost minute in a day must not
 * vanish by rounding.
 */
function draw(canvas: HTMLCanvasElement, cells: readonly HeatmapCell[]): void {
  const ratio = devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio);
  const height = Math.round(canvas.clientHeight * ratio);
  const pen = canvas.getContext("2d");
  if (width === 0 || !pen) return;
  canvas.width = width;
  canvas.height = height;
  const colours = cellStates.map(cssColour);
  const none = cssColour("none");
  const minPixels = Math.ceil(1.5 * ratio);
  const gap = width / cells.length > 3.5 * ratio ? Math.round(ratio) : 0;
  cells.forEach((fractions, column) => {
    const left = Math.round((column * width) / cells.length);
    const right = Math.round(((column + 1) * width) / cells.length);
    const across = Math.max(1, right - left - gap);
    pen.fillStyle = none;
    pen.fillRect(left, 0, across, height);
    // Worst state on top, so that even a small fraction is fully visible.
    const present = colours
      .map((colour, i) => ({ colour, fraction: fractions[i] ?? 0 }))
      .filter(({ fraction }) => fraction > 0);
    const total = present.reduce((sum, { fraction }) => sum + fraction, 0);
    let top = total >= 99 ? 0 : height - Math.round((height * total) / 100);
    for (const part of present.toReversed()) {
      const pixels = Math.max(minPixels, Math.round((height * part.fraction) / 100));
      const bottom = part === present[0] ? height : Math.min(height, top + pixels);
      pen.fillStyle = part.colour;
      pen.fillRect(left, top, across, bottom - top);
      top = bottom;
    }
  });
}

interface StripProps {
  readonly name: string;
  readonly runs: readonly CellRun[];
  readonly labels: readonly string[];
  readonly isSummary?: boolean;
  readonly href?: string | undefined;
}

/** What a canvas shows, for the tip. */
interface StripContent extends Pick<StripProps, "name" | "labels"> {
  readonly cells: readonly HeatmapCell[];
}

const Strips = createContext(new Map<EventTarget, StripContent>());

function Strip({ name, runs, labels, isSummary = false, href }: StripProps) {
  const strips = useContext(Strips);
  const canvas = useRef<HTMLCanvasElement>(null);
  const redraws = useRedraws();
  const cells = useMemo(() => expand(runs), [runs]);
  useLayoutEffect(() => {
    const target = canvas.current;
    if (!target) return;
    strips.set(target, { name, labels, cells });
    // It draws at once, too.
    const resized = new ResizeObserver(() => draw(target, cells));
    resized.observe(target);
    return () => {
      resized.disconnect();
      strips.delete(target);
    };
  }, [cells, redraws]);
  const label = { class: isSummary ? "name all" : "name", title: name };
  return (
    <>
      {href ? (
        <a {...label} href={href}>
          {name}
        </a>
      ) : (
        <span {...label}>{name}</span>
      )}
      <canvas
        class={isSummary ? "summary" : ""}
        role="img"
        aria-label={`${name}: ${summarize(cells)}`}
        ref={canvas}
      />
    </>
  );
}

/** Says what is under the pointer. */
function Tip() {
  const strips = useContext(Strips);
  const box = useRef<HTMLDivElement>(null);
  const [tip, setTip] = useState<{ text: string; x: number; top: number }>();
  useEffect(() => {
    const show = ({ target, clientX }: PointerEvent) => {
      const shown = target ? strips.get(target) : undefined;
      if (!shown || !(target instanceof Element)) return setTip(undefined);
      const { left, width, top } = target.getBoundingClientRect();
      const last = shown.cells.length - 1;
      const column = Math.min(last, Math.max(0, Math.floor(((clientX - left) / width) * (last + 1))));
      const text = `${shown.name} · ${shown.labels[column]}\n${describeCell(shown.cells[column] ?? [])}`;
      setTip({ text, x: clientX, top });
    };
    const hide = () => setTip(undefined);
    document.addEventListener("pointermove", show, { passive: true });
    document.addEventListener("pointerdown", show, { passive: true });
    document.addEventListener("scroll", hide, { passive: true });
  }, []);
  useLayoutEffect(() => {
    const { current } = box;
    if (!tip || !current) return;
    const left = Math.min(tip.x + 12, document.documentElement.clientWidth - current.offsetWidth - 8);
    current.style.left = `${Math.max(8, left)}px`;
    current.style.top = `${Math.max(8, tip.top - current.offsetHeight - 6)}px`;
  }, [tip]);
  return (
    <div id="tip" role="tooltip" hidden={!tip} ref={box}>
      {tip?.text}
    </div>
  );
}

interface GroupProps {
  readonly group: HeatmapGroup;
  readonly labels: readonly string[];
  readonly isFiltered: boolean;
  readonly isUnfolded: boolean;
  readonly onMore: (rows: number | undefined) => void;
}

function Group({ group, labels, isFiltered: isPart, isUnfolded, onMore }: GroupProps) {
  const { key, stream, index_type, step, lines, whole, rows } = group;
  const period = {
    hour: `last ${labels.length} hours`,
    day: `last ${labels.length} days`,
    month: `by month since ${labels[0]}`,
  }[step];
  const broken = lines - whole;
  // A map without a gap says everything in one line.
  const isFolded = broken === 0 && lines > 1 && !isPart && !isUnfolded;
  const health = broken === 0 ? "all complete" : `${count(whole)} complete, ${count(broken)} with gaps`;
  const members = index_type ? `${count(lines)} series` : countNoun(lines, "subscription");
  const left = group.matches - (isFolded ? 0 : rows.length);
  return (
    <div class="group" data-group={key}>
      <h3>
        {[title(stream), index_type].filter(Boolean).join(" · ")}
        <span class="group-note">{` · ${members}, ${health} · ${period}`}</span>
      </h3>
      <div class="map">
        <div class="axis" aria-hidden="true">
          {axis(labels, labels.length / 8).map(([fraction, text]) => (
            <span key={text} style={{ left: `${(fraction * 100).toFixed(2)}%` }}>
              {text}
            </span>
          ))}
        </div>
        {lines > 1 && !isPart && <Strip name="all" runs={group.summary} labels={labels} isSummary />}
        {(isFolded ? [] : rows).map((row) => (
          <Strip
            key={`${row.index_id} ${row.name}`}
            name={row.name ?? row.index_id ?? "everything"}
            runs={row.runs}
            labels={labels}
            href={row.slug ? pagePath("bars", row.slug) : undefined}
          />
        ))}
      </div>
      {left > 0 && (
        // The daemon rounds the number up to its next step.
        <button type="button" onClick={() => onMore(isFolded ? undefined : rows.length + 1)}>
          {`Show ${isFolded ? "all" : "more"} (${count(left)})`}
        </button>
      )}
    </div>
  );
}

const legend = {
  covered: "covered",
  unconfirmed: "awaiting confirmation",
  open: "open",
  lost: "lost",
  none: "not selected",
};

interface CoverageProps {
  /** Says how old the map is. */
  readonly age: (coverage: LiveAnswer<HeatmapResult>) => ComponentChildren;
}

/** The URL keeps the filter, so that it can be shared. */
export function Coverage({ age }: CoverageProps) {
  const [view, go] = useAddress(undefined, { name: "", problems: "" });
  /** The requested number of rows, by group. */
  const [requestedRows, setRequestedRows] = useState<Readonly<Record<string, number>>>({});
  /** The groups without a gap whose series are shown all the same. */
  const [unfolded, setUnfolded] = useState<readonly string[]>([]);
  const strips = useMemo(() => new Map<EventTarget, StripContent>(), []);
  // What was typed is asked for a moment later: until then the answer is that of the filter before.
  const question = useThrottled(
    String(new URLSearchParams({ name: view.name.trim(), problems: view.problems })),
    TYPING_SECONDS,
  );
  const params = new URLSearchParams(question);
  const filter = { name: params.get("name") ?? "", onlyProblems: params.get("problems") === "1" };
  for (const [group, rows] of Object.entries(requestedRows)) params.append("rows", `${group},${rows}`);
  // More rows are the same question: the list stays where it is.
  const coverage = useLivePoll("coverage", params, {
    ...{ what: "the coverage", seconds: 20, throttleSeconds: 2, question },
  });
  const choose = (change: Parameters<typeof go>[0]) => {
    setRequestedRows({});
    go(change, "replace");
  };
  const note = coverage.note === "" && coverage.value ? describeFilter(coverage.value, filter) : "";
  return (
    <Card
      name="coverage"
      title={["Coverage", age(coverage)]}
      controls={
        <ul class="legend" aria-label="Legend">
          {Object.entries(legend).map(([state, text]) => (
            <li key={state}>
              <i data-state={state} />
              {text}
            </li>
          ))}
        </ul>
      }
    >
      <form class="filter" id="filter">
        <input
          id="filter-name"
          type="search"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          placeholder="Filter series"
          aria-label="Only series whose name contains"
          value={view.name}
          onInput={({ currentTarget }) => choose({ name: currentTarget.value })}
        />
        <label>
          <input
            id="only-problems"
            type="checkbox"
            checked={view.problems === "1"}
            onChange={({ currentTarget }) => choose({ problems: currentTarget.checked ? "1" : "" })}
          />{" "}
          only problems
        </label>
        <span class="soft" id="filter-note" role="status">
          {note}
        </span>
      </form>
      <div id="coverage">
        <Strips.Provider value={strips}>
          <Reading of={[coverage]} room="page">
            {({ columns, groups }) => (
              <>
                {groups.map((group) => (
                  <Group
                    key={group.key}
                    group={group}
                    labels={columns[group.step]}
                    isFiltered={isFiltered(filter)}
                    isUnfolded={unfolded.includes(group.key)}
                    onMore={(rows) => {
                      if (rows !== undefined) setRequestedRows({ ...requestedRows, [group.key]: rows });
                      setUnfolded([...unfolded, group.key]);
                    }}
                  />
                ))}
                {groups.length === 0 && !isFiltered(filter) && (
                  <p class="soft empty">Nothing is synced yet.</p>
                )}
              </>
            )}
          </Reading>
          <Tip />
        </Strips.Provider>
      </div>
    </Card>
  );
}
