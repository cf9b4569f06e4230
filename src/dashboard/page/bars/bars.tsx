// One series as candles. The address holds the selection, so that it can be shared; Back and Forward go through it.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { familyOf } from "../../../model/answers/page-address.ts";
import type { BarWidth } from "../../../model/time.ts";
import { isTyping, SeriesBox } from "../shared/combobox.tsx";
import { type LiveAnswer, onMissed, Reading, shownIn, useCommits, useNote } from "../shared/live.tsx";
import { Card, Checkbox, Choice, EmptyPage, Legend, mountPage, Sheet, TabList } from "../shared/page.tsx";
import { byId, useRedraw } from "../shared/page-base.ts";
import { price } from "../shared/text-format.ts";
import { TimePicker } from "../shared/time-picker.tsx";
import { BarDetails, BarTable, describeGaps, Gaps, type ShownBars } from "./bar-report.tsx";
import { comparisons, stateOf } from "./bar-slots.ts";
import { BarsState, widths } from "./bars-state.ts";

const halves = (left: string, right: string) =>
  `linear-gradient(90deg, var(--${left}) 50%, var(--${right}) 50%)`;
const hatched = (state: string) =>
  `repeating-linear-gradient(135deg, var(--${state}) 0 1px, var(--band-${state}) 1px 4px)`;
const sample = (background: string, edge = "") => ({
  ...{ width: "10px", height: "12px", marginBottom: "-2px", background },
  ...(edge && { boxShadow: `inset 0 0 0 1px var(--${edge})` }),
});
const samples = {
  complete: sample(halves("up", "down")),
  incomplete: sample(halves("up-pale", "down-pale")),
  "volume, 24 h": sample("var(--volume)"),
  covered: sample("var(--band-covered)", "covered"),
  "awaiting confirmation": sample(hatched("unconfirmed")),
  open: sample(hatched("open")),
  lost: sample(hatched("lost")),
  empty: sample("var(--band-empty)", "line"),
};

const lineMark = { width: "14px", height: "3px", verticalAlign: "middle" };

function Compared({ state }: { state: BarsState }) {
  const { overlays } = state;
  return (
    <ul class="row soft" id="overlays" aria-label="Compared series" hidden={overlays.list.length === 0}>
      {overlays.list.map((overlay, i) => {
        const label = overlay.series?.name || overlay.slug;
        const remove = () => {
          overlays.remove(overlay);
          state.rescale();
        };
        return (
          <li key={overlay.slug}>
            <span class="mark" style={{ ...lineMark, background: `var(--line-${i + 1})` }} />
            {`${label} `}
            <span class="soft">
              {overlay.isUnread ? "could not be read" : familyOf(overlay.series?.index_type ?? "")}
            </span>{" "}
            <button type="button" aria-label={`Remove ${label}`} onClick={remove} children="×" />
          </li>
        );
      })}
    </ul>
  );
}

function Controls({ state }: { state: BarsState }) {
  return (
    <form class="controls row" id="controls">
      <SeriesBox
        {...{ id: "series", heading: "Series", label: "Series", placeholder: "Search by name" }}
        value={state.series?.name ?? ""}
        onChoose={(series) => {
          state.setSeries(series);
          byId("chart").focus({ preventScroll: true });
        }}
      />
      <div>
        <p class="small">Width of a bar</p>
        <TabList
          {...{ id: "widths", label: "Width of a bar", controls: "chart", value: state.width }}
          names={Object.fromEntries(widths.map((one) => [one, one])) as Record<BarWidth, string>}
          isHidden={(one) => !state.isAvailable(one)}
          onChoose={(one) => state.setWidth(one)}
        />
      </div>
      {state.figures.length > 0 && (
        <Choice
          {...{ id: "of", label: "Figure", value: state.figure }}
          options={state.figures.map((one) => [one, one.replaceAll("_", " ")])}
          onChoose={(of) => state.setSeries(state.series, of)}
        />
      )}
      <TimePicker picked={state.picked} now={state.now()} onPick={(picked) => state.setPicked(picked)} />
      <SeriesBox
        {...{ id: "compare", heading: "Compare with", placeholder: "Add a series" }}
        label="Series to compare with"
        onChoose={(series) => {
          state.overlays.add(series);
          state.rescale();
        }}
      />
      {state.overlays.list.length > 0 && (
        <TabList
          {...{ id: "comparison", label: "Comparison", controls: "chart", value: state.overlays.how }}
          names={comparisons}
          onChoose={(how) => state.compare(how)}
        />
      )}
      <Checkbox
        {...{ id: "log", label: "Log scale", value: state.isLog }}
        isDisabled={state.overlays.list.length > 0}
        onChoose={(isLog) => state.rescale(isLog)}
      />
      <Compared state={state} />
    </form>
  );
}

const CHART_LABEL =
  "Candles before their proof. The left and right arrow keys go from bar to bar, plus and minus zoom, Shift and drag measures.";

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
  const redraw = useRedraw();
  const [state] = useState(() => new BarsState(redraw));
  const [isTableOpen, setTableOpen] = useState(false);
  const chart = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!chart.current) return;
    const onKey = (event: KeyboardEvent) => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event)) state.typeWidth(event.key);
    };
    document.addEventListener("keydown", onKey);
    window.addEventListener("popstate", () => state.navigate());
    window.addEventListener("theme", () => state.applyTheme());
    onMissed(() => state.readAll());
    state.start(chart.current);
  }, []);
  useCommits((news) => state.follow(news));
  useNote(state.note, state.hasFailed);
  const { shown, unknown, note, hasFailed, inView = { from: 0, to: 0 } } = state;
  const bars: LiveAnswer<ShownBars> = { value: shown, note, hasFailed };
  const answer = shownIn(bars);
  const last = shown && shown.last_price !== null ? price(shown.last_price.toFixed(shown.precision)) : "";
  const name = state.series?.name ?? "Bars";
  const heading = (
    <>
      <span id="name">{name}</span>{" "}
      <span class="soft" id="family">
        {familyOf(answer?.index_type ?? "")}
      </span>{" "}
      <span id="last">{answer && last}</span>
    </>
  );
  return (
    <Sheet name="bars" title={heading} windowTitle={shown && last ? `${name} ${last}` : `${name} · mds-sync`}>
      {unknown && <EmptyPage {...unknown} page="bars" />}
      {/* A chart stays where it is: it would forget what it shows. */}
      <div class="work" hidden={unknown !== undefined}>
        <Card name="chart" label="Bars">
          <Controls state={state} />
          <p class="alert" id="note" hidden={note !== "" || state.remark === ""} children={state.remark} />
          <p class="row" id="bar-details" role="status" aria-live="polite">
            <Reading of={[bars]}>{(one) => <BarDetails bars={one} at={state.pointedAt} />}</Reading>
          </p>
          <div
            {...{ id: "chart", role: "application", "aria-roledescription": "chart" }}
            style={{ opacity: note === "" ? 1 : 0 }}
            {...{ "aria-label": CHART_LABEL, "aria-describedby": "bar-details", ref: chart }}
            {...chartData(state)}
          />
          <Legend of={samples} />
          <p class="soft more">
            <kbd>m</kbd> <kbd>5</kbd> <kbd>1</kbd>
            <kbd>5</kbd> <kbd>h</kbd> <kbd>4</kbd> <kbd>d</kbd> width · <kbd>Shift</kbd> drag measures ·{" "}
            <kbd>/</kbd> searches
          </p>
        </Card>
        <Card name="gaps" title="Gaps in view" note={answer ? describeGaps(answer, inView) : ""} of={[bars]}>
          {(one) => <Gaps bars={one} view={inView} hrefOf={(gap) => state.hrefOfGap(gap)} />}
        </Card>
        <section class="card">
          <details id="as-table" onToggle={({ currentTarget }) => setTableOpen(currentTarget.open)}>
            <summary>The newest bars as a table</summary>
            {isTableOpen && <Reading of={[bars]}>{(one) => <BarTable {...one} />}</Reading>}
          </details>
        </section>
      </div>
    </Sheet>
  );
}

mountPage(<Bars />);
