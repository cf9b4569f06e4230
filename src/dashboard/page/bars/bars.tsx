// One series as candles. The address holds the selection, so that it can be shared; Back and Forward go through it.

import { useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { watchTheme } from "../shared/layout.ts";
import { onMissed } from "../shared/live.ts";
import { type LiveAnswer, Reading, useCommits, useNote } from "../shared/live-poll.tsx";
import { Card, EmptyPage, mountPage } from "../shared/page.tsx";
import { isTyping } from "../shared/search-dialog.ts";
import { SeriesBox } from "../shared/series-box.tsx";
import { price } from "../shared/text-format.ts";
import { TimePicker } from "../shared/time-picker.tsx";
import { BarDetails, BarTable, describeGaps, Gaps, type ShownBars } from "./bar-report.tsx";
import { stateOf } from "./bar-slots.ts";
import { BarsState, widths } from "./bars-state.ts";

/** Class, span and name of each mark. */
const marks = [
  ["candle", undefined, "complete"],
  ["candle pale", undefined, "incomplete"],
  ["volume", undefined, "volume, 24 h"],
  ["band", "covered", "covered"],
  ["band", "unconfirmed", "awaiting confirmation"],
  ["band", "open", "open"],
  ["band", "lost", "lost"],
  ["band", "empty", "empty"],
] as const;

function Legend() {
  return (
    <>
      <ul class="legend" aria-label="Legend">
        {marks.map(([mark, span, name]) => (
          <li key={name}>
            <i class={mark} data-span={span} />
            {name}
          </li>
        ))}
      </ul>
      <p class="soft keys">
        <kbd>m</kbd> <kbd>5</kbd> <kbd>1</kbd>
        <kbd>5</kbd> <kbd>h</kbd> <kbd>4</kbd> <kbd>d</kbd> width · <kbd>Shift</kbd> drag measures ·{" "}
        <kbd>/</kbd> searches
      </p>
    </>
  );
}

function Widths({ state }: { state: BarsState }) {
  return (
    <fieldset class="widths">
      <legend>Width of a bar</legend>
      <div class="segments" id="widths">
        {widths.map((one) => {
          const isAvailable = state.isAvailable(one);
          return (
            <label key={one} title={isAvailable ? `Type ${one}` : "Only daily bars are stored"}>
              <input
                type="radio"
                name="width"
                value={one}
                checked={one === state.width}
                disabled={!isAvailable}
                onChange={() => state.setWidth(one)}
              />
              <span>{one}</span>
            </label>
          );
        })}
      </div>
    </fieldset>
  );
}

function Compared({ state }: { state: BarsState }) {
  const { overlays } = state;
  return (
    <ul class="chips" id="overlays" aria-label="Compared series" hidden={overlays.list.length === 0}>
      {overlays.list.map((overlay, i) => {
        const label = overlay.series?.name || overlay.slug;
        const remove = () => {
          overlays.remove(overlay);
          state.compare();
        };
        return (
          <li key={overlay.slug}>
            <i style={{ background: `var(--line-${i + 1})` }} />
            {`${label} `}
            <span class="soft">
              {overlay.isUnread ? "could not be read" : (overlay.series?.index_type ?? "")}
            </span>
            <button type="button" aria-label={`Remove ${label}`} onClick={remove}>
              ×
            </button>
          </li>
        );
      })}
    </ul>
  );
}

interface ControlsProps {
  readonly state: BarsState;
  readonly onSeries: Parameters<typeof SeriesBox>[0]["onChoose"];
}

function Controls({ state, onSeries }: ControlsProps) {
  return (
    <form class="controls" id="controls">
      <SeriesBox
        id="series"
        label="Series"
        listLabel="Series"
        placeholder="Search by name"
        name={state.series?.name ?? ""}
        onChoose={onSeries}
      />
      <Widths state={state} />
      <TimePicker picked={state.picked} now={state.now()} onPick={(picked) => state.setPicked(picked)} />
      <SeriesBox
        id="compare"
        label="Compare with"
        listLabel="Series to compare with"
        placeholder="Add a series"
        onChoose={(series) => {
          state.overlays.add(series);
          state.compare();
        }}
      />
      <label class="check">
        <input
          type="checkbox"
          id="log"
          checked={state.isLog}
          disabled={state.overlays.list.length > 0}
          onChange={({ currentTarget }) => state.setLog(currentTarget.checked)}
        />{" "}
        Log scale
      </label>
      <Compared state={state} />
    </form>
  );
}

/** For tests: what the chart shows. */
const chartData = ({ shown, inView, lines }: BarsState) =>
  shown && {
    "data-series": shown.index_id,
    "data-width": shown.width,
    "data-bars": shown.bars.length,
    "data-daily": shown.bars.filter(([, , , , , ticks]) => ticks === null).length,
    "data-missing": shown.slots.filter((slot) => stateOf(slot) === "missing").length,
    "data-from": shown.slots[0]?.time ?? "",
    "data-view": inView && new Date(inView.from * 1000).toISOString(),
    "data-overlays": lines,
  };

function Bars() {
  const [, redraw] = useReducer((times: number, _: undefined) => times + 1, 0);
  const [state] = useState(() => new BarsState(() => redraw(undefined)));
  const [isTableOpen, setTableOpen] = useState(false);
  const chart = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!chart.current) return;
    const onKey = (event: KeyboardEvent) => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event)) state.typeWidth(event.key);
    };
    const onNavigate = () => state.navigate();
    document.addEventListener("keydown", onKey);
    window.addEventListener("popstate", onNavigate);
    const ends = [
      state.start(chart.current),
      watchTheme(() => state.applyTheme()),
      onMissed(() => state.readAll()),
    ];
    return () => {
      document.removeEventListener("keydown", onKey);
      window.removeEventListener("popstate", onNavigate);
      for (const end of ends) end();
    };
  }, []);
  useCommits((news) => state.follow(news));
  useNote(state.note, state.hasFailed);
  const { shown, unknown, note, hasFailed, inView = { from: 0, to: 0 } } = state;
  const bars: LiveAnswer<ShownBars> = { value: shown, note, hasFailed };
  const last = shown && shown.last_price !== null ? price(shown.last_price.toFixed(shown.precision)) : "";
  const name = state.series?.name ?? "Bars";
  useLayoutEffect(() => {
    document.title = shown && last ? `${name} ${last}` : `${name} · mds-sync`;
  }, [name, last]);
  return (
    <>
      <div class="page-head">
        <h1 class="series-title">
          <span id="name">{name}</span>{" "}
          <span class="soft" id="family">
            {note === "" && shown?.index_type}
          </span>{" "}
          <span id="last">{note === "" && last}</span>
        </h1>
      </div>
      {unknown && <EmptyPage text={unknown.text} near={unknown.near} />}
      {/* A chart stays where it is: it would forget what it shows. */}
      <div class="cards" hidden={unknown !== undefined}>
        <Card name="chart" label="Bars">
          <Controls
            state={state}
            onSeries={(series) => {
              state.setSeries(series);
              chart.current?.focus({ preventScroll: true });
            }}
          />
          <p class="note" id="note" hidden={note !== "" || state.remark === ""}>
            {state.remark}
          </p>
          <p class="bar-details" id="bar-details" role="status" aria-live="polite">
            <Reading of={[bars]} isInline>
              {(one) => <BarDetails bars={one} at={state.pointedAt} />}
            </Reading>
          </p>
          <div
            class={note === "" ? "chart" : "chart blank"}
            id="chart"
            role="application"
            aria-roledescription="chart"
            aria-label="Candles before their proof. The left and right arrow keys go from bar to bar, plus and minus zoom, Shift and drag measures."
            aria-describedby="bar-details"
            ref={chart}
            {...chartData(state)}
          />
          <Legend />
        </Card>
        <Card
          name="gaps"
          title="Gaps in view"
          note={
            <Reading of={[bars]} isQuiet>
              {(one) => describeGaps(one, inView)}
            </Reading>
          }
        >
          <Reading of={[bars]}>
            {(one) => <Gaps bars={one} view={inView} hrefOf={(gap) => state.hrefOfGap(gap)} />}
          </Reading>
        </Card>
        <section class="card">
          <details id="as-table" onToggle={({ currentTarget }) => setTableOpen(currentTarget.open)}>
            <summary>The newest bars as a table</summary>
            {isTableOpen && <Reading of={[bars]}>{(one) => <BarTable {...one} />}</Reading>}
          </details>
        </section>
      </div>
    </>
  );
}

mountPage(<Bars />);
