// Everything that the warehouse knows about one asset. Each figure is a link to the SQL that made it.

import { pagePath } from "../../../model/answers/page-address.ts";
import type { CommittedTick } from "../../../model/answers/ticks.ts";
import type { ApiAnswers, AssetPart, ViewPart } from "../../api-answers.ts";
import { useAddress } from "../shared/address.ts";
import { columnOf, exploreLink, type Row, textIn, ViewTable } from "../shared/data-table.tsx";
import { cssColour } from "../shared/layout.tsx";
import { Reading, shownIn, useLivePoll, useNewestTick } from "../shared/live.tsx";
import { Card, EmptyPage, Facts, mountPage, Sheet } from "../shared/page.tsx";
import { Plot, type PlotDrawing } from "../shared/plot.tsx";
import { count, quote } from "../shared/text-format.ts";
import { duration, momentText } from "../shared/time-format.ts";

type Parts = ApiAnswers["asset"]["parts"];

const parts: readonly (readonly [key: AssetPart, heading: string, empty: string])[] = [
  ["exchanges", "On exchanges, by volume", "No quotes in USD are synced."],
  ["perpetuals", "Perpetuals", "No perpetuals are synced."],
  ["daily", "Daily bars against ticks", "No day has both."],
  ["futures", "Curve of futures", "No futures are synced."],
  ["coverage", "Proof", "Nothing is covered."],
  ["gaps", "Gaps", "Nothing is missing but what awaits confirmation."],
  ["revisions", "Revisions", "No stored row has changed."],
];

function Part({ part, heading, empty }: { part: ViewPart; heading: string; empty: string }) {
  const id = `part-${heading.split(/\W/)[0]}`;
  const link = { class: "soft", href: exploreLink(part.sql) };
  return (
    <Card name={id} title={heading} controls={<a {...link}>SQL</a>}>
      <ViewTable {...{ id, label: heading, part, empty }} />
    </Card>
  );
}

function listFacts({ market, index }: Pick<Parts, "market" | "index">, newest: CommittedTick | undefined) {
  const stored = index.rows[0];
  const [, , ts = 0, price = 0] = newest ?? [];
  const isNewer = stored && ts / 1000 > Date.parse(String(stored.time));
  const age = Math.max(0, (Date.now() - ts / 1000) / 1000);
  const tick = isNewer ? { price, is_settled: 0, age_seconds: age } : stored;
  const { time: _, ...ranked } = market.rows[0] ?? {};
  // The newest price first: that of the index, else that of the ranking.
  const row = tick ? { ...{ price: tick.price ?? null }, ...ranked, price: tick.price ?? null } : ranked;
  const proof =
    tick &&
    `${tick.is_settled === 1 ? "proven" : "awaiting confirmation"}, ${duration(Number(tick.age_seconds))} old`;
  return Object.keys(row).map((name) => {
    const isOfIndex = tick && name === "price";
    const column = columnOf(name, isOfIndex ? index.sql : market.sql);
    const text = textIn(column, row);
    const figure = <span class={column.tone?.(text, row)}>{column.cell?.(row, text)}</span>;
    return { name, label: column.label, figure, note: isOfIndex ? proof : "" };
  });
}

/** The closes whose hour is covered in full, and the others, with their neighbours: a line has no hole where its colour changes. */
function Prices({ hours }: { hours: readonly Row[] }) {
  const draw = (rows: readonly Row[]): PlotDrawing | undefined => {
    if (rows.length < 2) return undefined;
    const closes = (isComplete: number) =>
      rows.map(({ close, is_complete }, i) =>
        is_complete === isComplete ||
        (isComplete === 0 && [rows[i - 1], rows[i + 1]].some((beside) => beside?.is_complete === 0))
          ? (close as number | null)
          : null,
      );
    return {
      data: [rows.map(({ ts }) => Number(ts) / 1e6), closes(1), closes(0)],
      xLabel: "hour",
      xValues: (seconds) => momentText(seconds * 1e6, 16),
      yValue: (value) => (value >= 1_000 ? count(Math.round(value)) : quote(value)),
      lines: [
        { label: "proven", stroke: cssColour("covered") },
        { label: "not proven yet", stroke: cssColour("open") },
      ],
      ...{ hasPoints: false, isTime: true },
    };
  };
  const label = "Hourly closes of seven days, proven and not";
  return <Plot id="price-plot" label={label} data-points={hours.length} of={hours} draw={draw} />;
}

function Asset() {
  const [{ name }] = useAddress("assets", {});
  const asset = useLivePoll("asset", { name }, { what: "the asset", seconds: 30, throttleSeconds: 10 });
  const subject = asset.value?.subject;
  const newest = useNewestTick(String(subject?.asset_id));
  const answer = shownIn(asset);
  const isUnknown = answer && !subject;
  const found = useLivePoll("series", isUnknown ? { name } : undefined, {
    what: "similar names",
    seconds: 3_600,
  });
  const near = found.value?.flatMap(({ index_type, slug }) => (index_type === "GWA" ? slug : []));
  const none = isUnknown && <EmptyPage text={`No synced asset is named “${name}”.`} near={near} />;
  const symbol = String(subject?.symbol ?? "");
  const links = [
    <a key="bars" id="to-bars" href={pagePath("bars", symbol)} children="Chart" />,
    <a key="exchanges" href={pagePath("exchanges", `${symbol}/USD`)} children="Exchanges" />,
    <a key="derivatives" href={pagePath("derivatives", symbol)} children="Derivatives" />,
  ];
  return (
    <Sheet
      {...{ name: "asset", windowTitle: `${symbol || "Asset"} · mds-sync`, instead: none }}
      title={[symbol || "Asset", <span key="name" class="soft" children={subject?.name} />]}
      note={answer && subject && links.flatMap((link, at) => (at > 0 ? [" · ", link] : [link]))}
    >
      <Card name="price" label="Price">
        <Reading of={[asset]} room="figure">
          {({ parts }) => <Facts id="facts" of={listFacts(parts, newest)} />}
        </Reading>
        <Reading of={[asset]} isQuiet room="plot">
          {({ parts }) => <Prices hours={parts.hours.rows} />}
        </Reading>
      </Card>
      <Reading of={[asset]} isQuiet room="page">
        {(answer) => (
          <div class="parts" id="parts">
            {parts.map(([key, heading, empty]) => {
              // Without a proof and without a gap there is no target.
              const isUnselected = key === "gaps" && answer.parts.coverage.rows.length === 0;
              const text = isUnselected ? "Nothing is selected." : empty;
              return <Part key={key} part={answer.parts[key]} heading={heading} empty={text} />;
            })}
          </div>
        )}
      </Reading>
      <p class="soft">Each figure leads to the SQL that made it. Funding is taken as paid every 8 hours.</p>
    </Sheet>
  );
}

mountPage(<Asset />);
