// The heat map: one strip per series, with one column per hour, day or month and the fractions of the states stacked in each.

import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { cellStates, type HeatmapGroup, type HeatmapResult } from "../../../model/answers/heatmap.ts";
import { pagePath } from "../../../model/answers/page-address.ts";
import { useAddress } from "../shared/address.ts";
import { cssColour } from "../shared/layout.tsx";
import {
  type LiveAnswer,
  Reading,
  shownIn,
  TYPING_SECONDS,
  useLivePoll,
  useThrottled,
} from "../shared/live.tsx";
import { Card, Checkbox, Legend, SearchField } from "../shared/page.tsx";
import { useRedraws, useResized } from "../shared/page-base.ts";
import { count, countNoun, title } from "../shared/text-format.ts";
import { axis, describeCell, expand, type HeatmapCell, stateLabels, summarize } from "./heat-map.ts";

type Filter = { readonly name: string; readonly onlyProblems: boolean };

const isFiltered = ({ name, onlyProblems }: Filter) => name !== "" || onlyProblems;

function describeFilter({ groups }: HeatmapResult, filter: Filter): string {
  if (!isFiltered(filter)) return "";
  const found = groups.reduce((sum, { matches }) => sum + matches, 0);
  if (found > 0) return `${countNoun(found, "line")} found`;
  if (filter.name === "") return "No problems.";
  return `No ${filter.onlyProblems ? "incomplete " : ""}series has “${filter.name}” in its name.`;
}

/** Every state that occurs gets at least one pixel: one lost minute in a day must not vanish by rounding. */
function draw(canvas: HTMLCanvasElement, cells: readonly HeatmapCell[]): void {
  const [ratio, pen] = [devicePixelRatio || 1, canvas.getContext("2d")];
  const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((px) => Math.round(px * ratio));
  if (!width || !height || !pen) return;
  Object.assign(canvas, { width, height });
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
    const parts = colours.map((colour, i) => ({ colour, fraction: fractions[i] ?? 0 }));
    const present = parts.filter(({ fraction }) => fraction > 0);
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
  readonly runs: HeatmapGroup["summary"];
  readonly labels: readonly string[];
  readonly isSummary?: boolean;
  readonly href?: string | undefined;
}

function Strip({ name, runs, labels, isSummary = false, href }: StripProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [tip, setTip] = useState<{ readonly text: string; readonly x: number; readonly top: number }>();
  const redraws = useRedraws();
  const cells = useMemo(() => expand(runs), [runs]);
  useResized(canvas, () => canvas.current && draw(canvas.current, cells), [cells, redraws]);
  const show = ({ clientX, currentTarget }: PointerEvent & { currentTarget: HTMLElement }) => {
    const { left, width, top } = currentTarget.getBoundingClientRect();
    const column = Math.floor(((clientX - left) / width) * cells.length);
    const at = Math.min(cells.length - 1, Math.max(0, column));
    setTip({ text: `${name} · ${labels[at]}\n${describeCell(cells[at] ?? [])}`, x: clientX, top });
  };
  return (
    <>
      <a class={isSummary ? "ellipsis faint" : "ellipsis"} title={name} href={href} children={name} />
      <canvas
        {...{ role: "img", ref: canvas, style: isSummary ? { height: "24px", marginBottom: "3px" } : {} }}
        {...{ onPointerMove: show, onPointerDown: show, onPointerLeave: () => setTip(undefined) }}
        aria-label={`${name}: ${summarize(cells)}`}
      />
      {tip && (
        <div
          {...{ id: "tip", role: "tooltip" }}
          style={`left: min(${tip.x + 12}px, 100vw - 20em - 8px); bottom: min(100vh - ${tip.top - 6}px, 100vh - 5em)`}
        >
          {tip.text}
        </div>
      )}
    </>
  );
}

interface GroupProps {
  readonly group: HeatmapGroup;
  readonly labels: readonly string[];
  readonly isPart: boolean;
  readonly isUnfolded: boolean;
  readonly onUnfold: () => void;
}

function Group({ group, labels, isPart, isUnfolded, onUnfold }: GroupProps) {
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
        <span class="soft">{` · ${members}, ${health} · ${period}`}</span>
      </h3>
      <div class="map">
        <div class="axis small ellipsis" aria-hidden="true">
          {axis(labels, labels.length / 8).map(([fraction, text]) => (
            <span key={text} style={{ left: `${(fraction * 100).toFixed(2)}%` }} children={text} />
          ))}
        </div>
        {lines > 1 && !isPart && <Strip name="all" runs={group.summary} labels={labels} isSummary />}
        {(isFolded ? [] : rows).map((row) => (
          <Strip
            key={`${row.index_id} ${row.name}`}
            {...{ name: row.name ?? row.index_id ?? "everything", runs: row.runs, labels }}
            href={row.slug ? pagePath("bars", row.slug) : undefined}
          />
        ))}
      </div>
      {left > 0 && !isUnfolded && (
        <button type="button" class="more" onClick={onUnfold}>
          {`Show ${isFolded ? "all" : "more"} (${count(left)})`}
        </button>
      )}
      {left > 0 && isUnfolded && (
        <p class="soft more" children={`${count(left)} more: filter by their name.`} />
      )}
    </div>
  );
}

const legend = { ...stateLabels, none: "not selected" };

/** The URL keeps the filter, so that it can be shared. */
export function Coverage({ age }: { age: (of: LiveAnswer<HeatmapResult>) => ComponentChildren }) {
  const [view, go] = useAddress(undefined, { name: "", problems: "" });
  /** The groups of which more than the first series are shown, also if none of them has a gap. */
  const [unfolded, setUnfolded] = useState<readonly string[]>([]);
  // What was typed is asked for a moment later: until then the answer is that of the filter before.
  const question = useThrottled(
    String(new URLSearchParams({ name: view.name.trim(), problems: view.problems })),
    TYPING_SECONDS,
  );
  const params = new URLSearchParams(question);
  const filter = { name: params.get("name") ?? "", onlyProblems: params.get("problems") === "1" };
  for (const group of unfolded) params.append("all", group);
  // More rows are the same question: the list stays where it is.
  const coverage = useLivePoll("coverage", params, {
    ...{ what: "the coverage", seconds: 20, throttleSeconds: 2, question },
  });
  const choose = (change: Parameters<typeof go>[0]) => {
    setUnfolded([]);
    go(change, "replace");
  };
  const answer = shownIn(coverage);
  return (
    <Card name="coverage" title={["Coverage", age(coverage)]} controls={<Legend of={legend} />}>
      <form class="controls row" id="filter">
        <SearchField
          {...{ id: "filter-name", label: "Filter series", value: view.name }}
          onChoose={(name) => choose({ name })}
        />
        <Checkbox
          {...{ id: "only-problems", label: "only problems", value: view.problems === "1" }}
          onChoose={(isChecked) => choose({ problems: isChecked ? "1" : "" })}
        />
        <span class="soft" id="filter-note" role="status">
          {answer && describeFilter(answer, filter)}
        </span>
      </form>
      <div id="coverage">
        <Reading of={[coverage]} room="page">
          {({ columns, groups }) => (
            <>
              {groups.map((group) => (
                <Group
                  key={group.key}
                  {...{ group, labels: columns[group.step], isPart: isFiltered(filter) }}
                  isUnfolded={unfolded.includes(group.key)}
                  onUnfold={() => setUnfolded([...unfolded, group.key])}
                />
              ))}
              {groups.length === 0 && !isFiltered(filter) && <p class="soft empty">Nothing is synced yet.</p>}
            </>
          )}
        </Reading>
      </div>
    </Card>
  );
}
