// The state of the sync: what is missing first, then the coverage of each series, the streams and the last errors.

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { GapSummary, GapSummaryResult } from "../../../model/answers/heatmap.ts";
import { describeConfirmations } from "../../../model/status/confirmations.ts";
import { gapStates } from "../../../model/status/gap-state.ts";
import type { ServeStatus } from "../../../model/status/serve-status.ts";
import { describeLimit, HOST_SCOPE, type ServiceCondition } from "../../../model/status/service-condition.ts";
import { describeShare, listShareParts, type ShareStatus } from "../../../model/status/share-status.ts";
import type {
  StreamStatus,
  WarehouseStatus,
  WithdrawalStatus,
} from "../../../model/status/warehouse-status.ts";
import type { DaemonAnswer } from "../../api-answers.ts";
import { type DataColumn, DataTable } from "../shared/data-table.tsx";
import { type LiveAnswer, Reading, useLivePoll } from "../shared/live-poll.tsx";
import { Card, mountPage } from "../shared/page.tsx";
import { describeBackfill } from "../shared/proof.ts";
import {
  asOf,
  brief,
  count,
  countNoun,
  duration,
  minuteOf,
  secondsBetween,
  title,
  zoneName,
} from "../shared/text-format.ts";
import { Coverage } from "./coverage-map.tsx";

const MISSING_STEP = 8;

interface AgeProps {
  readonly name: string;
  readonly of: LiveAnswer<{ readonly generated_at: string }>;
  readonly daemon: LiveAnswer<DaemonAnswer>;
}

/** Says of figures that are older than the daemon's state of which moment they are. */
function Age({ name, of, daemon }: AgeProps) {
  const isTold = of.note === "" && of.value && daemon.value;
  const text = isTold ? asOf(of.value?.generated_at ?? "", daemon.value?.generated_at ?? "") : "";
  return (
    <span class="group-note" id={`${name}-age`}>
      {text}
    </span>
  );
}

/** Two lines of a cell, the second behind the first. */
function Lines({ children, note }: { children: ComponentChildren; note?: string }) {
  return (
    <>
      {children}
      {note && <br />}
      {note && <span class="soft">{note}</span>}
    </>
  );
}

// ---- the daemon

function Head({ daemon }: { daemon: LiveAnswer<DaemonAnswer> }) {
  const tone = daemon.hasFailed ? "ill" : (daemon.value?.tone ?? "busy");
  useEffect(() => {
    document.title = `${tone === "ill" ? "✕ " : ""}Sync · mds-sync`;
  }, [tone]);
  return (
    <div class="page-head">
      <h1 id="state" data-tone={tone}>
        <span class="dot" />
        <span id="sentence" role="status">
          <Reading of={[daemon]} isInline>
            {({ sentence }) => sentence}
          </Reading>
        </span>
      </h1>
      <p class="soft" id="since">
        <Reading of={[daemon]} isQuiet>
          {({ started_at, generated_at, backfill }) =>
            `Running for ${duration(secondsBetween(started_at, generated_at))}${backfill ? ` · ${describeBackfill(backfill)}` : ""}`
          }
        </Reading>
      </p>
    </div>
  );
}

interface FigureProps<T> {
  readonly label: string;
  readonly name: string;
  readonly of: LiveAnswer<T>;
  readonly isQuiet?: boolean;
  readonly children: (value: T) => {
    readonly text: string;
    readonly title?: string;
    readonly chart?: ComponentChildren;
    readonly note: ComponentChildren;
  };
}

function Figure<T>({ label, name, of, isQuiet = false, children }: FigureProps<T>) {
  return (
    <div class="figure">
      <h2>{label}</h2>
      <Reading of={[of]} room="figure" isQuiet={isQuiet}>
        {(value) => {
          const { text, title: exact, chart, note } = children(value);
          return (
            <>
              <p class="big" id={name} title={exact}>
                {text}
              </p>
              {chart}
              <p class="soft">{note}</p>
            </>
          );
        }}
      </Reading>
    </div>
  );
}

function Spark({ rates }: { rates: readonly number[] }) {
  const max = Math.max(4, ...rates);
  const points = rates.map(
    (rate, i) =>
      `${((i * 120) / Math.max(1, rates.length - 1)).toFixed(1)},${(23 - (rate * 22) / max).toFixed(1)}`,
  );
  const line = points.join("L");
  const label = "Requests per second over the last two minutes";
  return (
    <svg id="spark" viewBox="0 0 120 24" preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="area" d={points.length > 1 ? `M0,24L${line}L120,24Z` : ""} />
      <path class="curve" d={points.length > 1 ? `M${line}` : ""} />
    </svg>
  );
}

function rateText(rates: readonly number[]): string {
  const recent = rates.slice(-10);
  const mean = recent.reduce((sum, rate) => sum + rate, 0) / (recent.length || 1);
  return mean >= 10 || mean === 0 ? count(Math.round(mean)) : mean.toFixed(1);
}

function limitText(service: ServiceCondition): string {
  const { concurrency, per_second, open_breakers, recent_failures } = service;
  const rate = per_second === null ? "" : `at most ${Number(per_second.toPrecision(2))}/s`;
  const failing = open_breakers.map((endpoint) =>
    endpoint === HOST_SCOPE ? "no answer" : `${endpoint} fails`,
  );
  const retries = Object.values(recent_failures).reduce((sum, times) => sum + times, 0);
  const retried = retries > 0 ? `${count(retries)} retried in 10 minutes` : "";
  const parts = [rate, `${concurrency} at once`, describeLimit(service), ...failing, retried];
  return parts.filter(Boolean).join(" · ");
}

const sumOf = ({ streams }: WarehouseStatus, of: "rows" | (typeof gapStates)[number]) =>
  streams.reduce((total, stream) => total + stream[of], 0);

function gapNote(status: WarehouseStatus, state: (typeof gapStates)[number]): string {
  const ranges = sumOf(status, state);
  if (ranges === 0) return "nothing";
  if (state === "unconfirmed")
    return (
      describeConfirmations(status.confirmations, status.generated_at) ?? "the newest moments of each series"
    );
  const most = Math.max(...status.streams.map((stream) => stream[`${state}_max_seconds`]));
  return `range${ranges === 1 ? "" : "s"}, at most ${duration(most)} of a series`;
}

function Figures({
  daemon,
  status,
}: {
  daemon: LiveAnswer<DaemonAnswer>;
  status: LiveAnswer<WarehouseStatus>;
}) {
  return (
    <section class="figures" aria-label="Figures">
      <Figure label="Rows stored" name="rows" of={status}>
        {(one) => {
          const streams = one.streams.filter(({ rows }) => rows > 0).length;
          const age = <Age name="status" of={status} daemon={daemon} />;
          const rows = sumOf(one, "rows");
          return { text: brief(rows), title: count(rows), note: [`in ${countNoun(streams, "stream")}`, age] };
        }}
      </Figure>
      {gapStates.map((state) => (
        <Figure key={state} label={title(state)} name={state} of={status} isQuiet>
          {(one) => ({ text: brief(sumOf(one, state)), note: gapNote(one, state) })}
        </Figure>
      ))}
      <Figure label="Requests per second" name="rate" of={daemon}>
        {({ requests_per_second: rates, service }) => ({
          text: rateText(rates),
          chart: <Spark rates={rates} />,
          note: limitText(service),
        })}
      </Figure>
    </section>
  );
}

// ---- what is missing

const missingColumns: readonly DataColumn<GapSummary>[] = [
  {
    ...{ label: "Series", className: "series" },
    cell: ({ name, index_id, stream, index_type }) => (
      <Lines note={[title(stream), index_type].filter(Boolean).join(" · ")}>
        <span title={name ?? undefined}>{name ?? index_id ?? "everything"}</span>
      </Lines>
    ),
  },
  {
    label: "State",
    cell: ({ state, reason }) => (
      <Lines note={reason}>
        <i class="mark" data-state={state} />
        {state}
      </Lines>
    ),
  },
  {
    ...{ label: "Length", className: "number" },
    cell: ({ seconds, ranges }) => (
      <Lines note={ranges > 1 ? `${brief(ranges)} ranges` : ""}>{duration(seconds)}</Lines>
    ),
  },
  {
    ...{ label: `Range (${zoneName()})`, isWide: true, className: "faint" },
    cell: ({ from_time, to_time }) => `${minuteOf(from_time)} → ${minuteOf(to_time)}`,
  },
  {
    ...{ label: "Leaves the window", isWide: true, className: "faint" },
    cell: ({ lost_at }) => minuteOf(lost_at) || "–",
  },
];

function missingNote({ open, lost, parts }: GapSummaryResult): string {
  if (open + lost === 0) return "";
  const more = open + lost > parts.length ? `, the longest ${count(parts.length)} are listed` : "";
  return `series: ${count(open)} open, ${count(lost)} lost${more}`;
}

function Missing({ daemon }: { daemon: LiveAnswer<DaemonAnswer> }) {
  const gaps = useLivePoll("missing", {}, { what: "the gaps", seconds: 20, throttleSeconds: 2 });
  const head = ["Open and lost", <Age key="age" name="missing" of={gaps} daemon={daemon} />];
  const note = gaps.note === "" && gaps.value ? missingNote(gaps.value) : "";
  return (
    <Card name="missing" title={head} note={note} of={[gaps]} room="line">
      {({ parts, lines }) => (
        <DataTable
          id="missing"
          label="Open and lost"
          columns={missingColumns}
          rows={parts}
          step={MISSING_STEP}
          empty={lines > 0 ? "Nothing is missing." : "Nothing is selected yet."}
          attributes={({ stream, index_type, index_id, reason }) => ({
            key: [stream, index_type, index_id, reason].join(),
          })}
        />
      )}
    </Card>
  );
}

// ---- the streams

function withdrawalRemark({ index_type, name, rows, from_time, believed_at }: WithdrawalStatus): string {
  const what = `${countNoun(rows, "row")} of ${index_type} ${name} since ${minuteOf(from_time)}`;
  return believed_at ? `withdrew ${what}` : `no longer serves ${what}: unconfirmed`;
}

function remarkOf(stream: StreamStatus, withdrawals: readonly WithdrawalStatus[]): string {
  const scopes = stream.missing_scopes.length > 0 ? `lacks ${stream.missing_scopes.join(", ")}` : "";
  const own = withdrawals.filter((withdrawal) => withdrawal.stream === stream.stream);
  const more = own.length > 3 ? `and ${own.length - 3} more withdrawals` : "";
  const offset = stream.live_offset_ms === null ? "" : `websocket ${stream.live_offset_ms} ms off REST`;
  return [scopes, stream.last_error ?? "", ...own.slice(0, 3).map(withdrawalRemark), more, offset]
    .filter(Boolean)
    .join(" · ");
}

interface StreamRow extends StreamStatus {
  readonly remark: string;
}

const streamColumns: readonly DataColumn<StreamRow>[] = [
  { label: "Stream", value: ({ stream }) => title(stream) },
  {
    ...{ label: "Newest", className: "age" },
    value: ({ newest_age_s }) => newest_age_s,
    format: (age) => (age === null ? "–" : duration(age)),
  },
  { label: "Rows", className: "number", cell: ({ rows }) => <span title={count(rows)}>{brief(rows)}</span> },
  {
    ...{ label: `Covered (${zoneName()})`, isWide: true, className: "faint" },
    cell: ({ from_time, to_time }) =>
      from_time ? `${minuteOf(from_time).slice(0, 10)} → ${minuteOf(to_time)}` : "",
  },
  ...gapStates.map((state) => ({
    label: title(state),
    value: (stream: StreamRow) => stream[state],
    format: (ranges: number | null) => (ranges ? brief(ranges) : "–"),
  })),
  { label: "Remark", className: "remark", cell: ({ remark }) => remark },
];

function Streams({ status }: { status: LiveAnswer<WarehouseStatus> }) {
  return (
    <Card name="streams" title="Streams" of={[status]} room="table">
      {({ streams, withdrawals }) => (
        <DataTable
          id="streams"
          label="Streams"
          columns={streamColumns}
          rows={streams.map((stream) => ({ ...stream, remark: remarkOf(stream, withdrawals) }))}
          attributes={({ stream, rows, remark }) => ({
            ...{ key: stream, "data-stream": stream },
            class: rows === 0 && !remark ? "faint" : undefined,
          })}
        />
      )}
    </Card>
  );
}

// ---- who else reads, and what failed

type SharePart = ReturnType<typeof listShareParts>[number];
const shareColumns: readonly DataColumn<SharePart>[] = [
  { label: "Part", className: "series", cell: ({ name, what }) => <Lines note={what}>{name}</Lines> },
  { label: "State", className: "remark", value: ({ state }) => state },
];

function Shared({ shared }: { shared: ShareStatus }) {
  const error = shared.last_error === null ? "" : ` · ${shared.last_error}`;
  const note = `${shared.name}: ${describeShare(shared, duration)}${error}`;
  const parts = listShareParts(shared, duration);
  return (
    <Card name="shared" title="Shared warehouse" note={note}>
      {parts.length > 0 && (
        <DataTable
          id="shared-parts"
          label="Shared warehouse"
          columns={shareColumns}
          rows={parts}
          attributes={({ what, name }) => ({ key: `${what} ${name}` })}
        />
      )}
    </Card>
  );
}

type Client = ServeStatus["clients"][number];
const clientColumns = (now: string): readonly DataColumn<Client>[] => [
  { label: "Client", cell: ({ client_id }) => client_id || "no token" },
  { label: "Address", value: ({ address }) => address },
  { label: "Reads", cell: ({ is_replay }) => (is_replay ? "a replay" : "live ticks") },
  { label: "Subscriptions", value: ({ subscriptions }) => subscriptions, format: (n) => count(n ?? 0) },
  { label: "Messages", value: ({ sent }) => sent, format: (n) => count(n ?? 0) },
  {
    label: "Connected",
    value: ({ connected_at }) => secondsBetween(connected_at, now),
    format: (seconds) => duration(seconds ?? 0),
  },
];

function Served({ serve, now }: { serve: ServeStatus; now: string }) {
  const dropped = serve.dropped > 0 ? ` · ${countNoun(serve.dropped, "slow client")} dropped` : "";
  const note = `${serve.address} · ${countNoun(serve.requests, "request")}${dropped}`;
  return (
    <Card name="serve" title="Served" note={note}>
      <DataTable
        id="serve-clients"
        label="Served"
        columns={clientColumns(now)}
        rows={serve.clients}
        empty="Nobody is connected to the websocket."
        attributes={(client) => ({ key: `${client.address} ${client.connected_at}` })}
      />
    </Card>
  );
}

function Errors({ errors, now }: { errors: DaemonAnswer["errors"]; now: string }) {
  if (errors.length === 0)
    return (
      <p class="soft empty" id="no-errors">
        None since the start.
      </p>
    );
  return (
    <ul id="errors" class="errors">
      {errors.map(({ where, code, message, last_at, count: times }) => (
        <li key={`${where} ${code} ${message}`}>
          <span class="faint" title={last_at}>{`${duration(secondsBetween(last_at, now))} ago`}</span>
          <p>
            <Lines note={`${where} · ${code}${times > 1 ? ` · ${count(times)} times` : ""}`}>{message}</Lines>
          </p>
        </li>
      ))}
    </ul>
  );
}

function Sync() {
  const throttleSeconds = 2;
  const daemon = useLivePoll("daemon", {}, { what: "the daemon’s state", seconds: 2, throttleSeconds });
  const status = useLivePoll("status", {}, { what: "the streams", seconds: 5, throttleSeconds });
  return (
    <>
      <Head daemon={daemon} />
      <Figures daemon={daemon} status={status} />
      <Missing daemon={daemon} />
      <Coverage age={(coverage) => <Age name="coverage" of={coverage} daemon={daemon} />} />
      <Streams status={status} />
      <Reading of={[daemon]} isQuiet>
        {({ shared, serve, generated_at }) => (
          <>
            {shared && <Shared shared={shared} />}
            {serve && <Served serve={serve} now={generated_at} />}
          </>
        )}
      </Reading>
      <Card name="errors" title="Last errors" of={[daemon]}>
        {({ errors, generated_at }) => <Errors errors={errors} now={generated_at} />}
      </Card>
      <p class="soft" id="warehouse">
        <Reading of={[status]} isQuiet>
          {({ warehouse }) => warehouse}
        </Reading>
      </p>
    </>
  );
}

mountPage(<Sync />);
