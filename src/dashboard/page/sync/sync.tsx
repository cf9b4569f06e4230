import type { ComponentChildren } from "preact";
import type { GapSummary, GapSummaryResult } from "../../../model/answers/heatmap.ts";
import { describeConfirmations, type GapState, gapStates } from "../../../model/status/gap-state.ts";
import { describeLimit, HOST_SCOPE, type ServiceCondition } from "../../../model/status/service-condition.ts";
import { describeShare, listShareParts } from "../../../model/status/share-status.ts";
import type { StreamStatus, WarehouseStatus } from "../../../model/status/warehouse-status.ts";
import type { DaemonAnswer } from "../../api-answers.ts";
import { type DataColumn, DataTable } from "../shared/data-table.tsx";
import { type LiveAnswer, Reading, shownIn, useLivePoll } from "../shared/live.tsx";
import { Card, Dot, Mark, mountPage, Sheet, TrendLine } from "../shared/page.tsx";
import { describeBackfill } from "../shared/proof.ts";
import { brief, count, countNoun, title } from "../shared/text-format.ts";
import { asOf, duration, minuteOf, secondsBetween, zoneName } from "../shared/time-format.ts";
import { Coverage } from "./coverage-map.tsx";

type AgeProps = { name: string; of: LiveAnswer<{ generated_at: string }>; daemon: LiveAnswer<DaemonAnswer> };

/** Says of figures that are older than the daemon's state of which moment they are. */
function Age({ name, of, daemon }: AgeProps) {
  const [time, now] = [shownIn(of)?.generated_at, daemon.value?.generated_at];
  return <span class="soft" id={`${name}-age`} children={time && now ? asOf(time, now) : ""} />;
}

interface FigureProps<T> extends Readonly<Record<"label" | "name", string>> {
  readonly of: LiveAnswer<T>;
  readonly isQuiet?: boolean;
  readonly children: (value: T) => readonly [figure: ComponentChildren, note: ComponentChildren];
}

function Figure<T>({ label, name, of, isQuiet = false, children }: FigureProps<T>) {
  const show = (value: T) => {
    const [figure, note] = children(value);
    return [
      <p key="figure" class="big" id={name} children={figure} />,
      <p key="note" class="soft" children={note} />,
    ];
  };
  return (
    <div class="card">
      <h2 class="soft">{label}</h2>
      <Reading of={[of]} room="figure" isQuiet={isQuiet} children={show} />
    </div>
  );
}

const joined = (parts: readonly (string | null | undefined)[]) => parts.filter(Boolean).join(" · ");

const Brief = ({ of }: { of: number }) => <span title={count(of)}>{brief(of)}</span>;

function Rates({ rates }: { rates: readonly number[] }) {
  const points = rates.map((rate, i) => [i / Math.max(1, rates.length - 1), rate] as const);
  const label = "Requests per second over the last two minutes";
  return <TrendLine hasArea {...{ points, label }} range={[0, 4]} />;
}

function rateText(rates: readonly number[]): string {
  const recent = rates.slice(-10);
  const mean = recent.reduce((sum, rate) => sum + rate, 0) / (recent.length || 1);
  return mean >= 10 || mean === 0 ? count(Math.round(mean)) : mean.toFixed(1);
}

function limitText(service: ServiceCondition): string {
  const { concurrency, per_second, open_breakers, recent_failures } = service;
  const rate = per_second === null ? "" : `at most ${Number(per_second.toPrecision(2))}/s`;
  const failing = open_breakers.map((one) => (one === HOST_SCOPE ? "no answer" : `${one} fails`));
  const retries = Object.values(recent_failures).reduce((sum, times) => sum + times, 0);
  const retried = retries > 0 ? `${count(retries)} retried in 10 minutes` : "";
  return joined([rate, `${concurrency} at once`, describeLimit(service), ...failing, retried]);
}

const sumOf = ({ streams }: WarehouseStatus, of: "rows" | GapState) =>
  streams.reduce((total, stream) => total + stream[of], 0);

function gapNote(status: WarehouseStatus, state: GapState): string {
  const { confirmations, generated_at } = status;
  const ranges = sumOf(status, state);
  if (ranges === 0) return "nothing";
  if (state === "unconfirmed")
    return describeConfirmations(confirmations, generated_at) ?? "the newest moments of each series";
  const most = Math.max(...status.streams.map((stream) => stream[`${state}_max_seconds`]));
  return `range${ranges === 1 ? "" : "s"}, at most ${duration(most)} of a series`;
}

type FiguresProps = { daemon: LiveAnswer<DaemonAnswer>; status: LiveAnswer<WarehouseStatus> };

function Figures({ daemon, status }: FiguresProps) {
  const storing = ({ streams }: WarehouseStatus) => streams.filter(({ rows }) => rows > 0).length;
  const age = <Age key="age" name="status" of={status} daemon={daemon} />;
  return (
    <section class="figures" aria-label="Figures">
      <Figure label="Rows stored" name="rows" of={status}>
        {(one) => [
          <Brief key="rows" of={sumOf(one, "rows")} />,
          [`in ${countNoun(storing(one), "stream")}`, age],
        ]}
      </Figure>
      {gapStates.map((state) => (
        <Figure key={state} {...{ label: title(state), name: state, of: status, isQuiet: true }}>
          {(one) => [brief(sumOf(one, state)), gapNote(one, state)]}
        </Figure>
      ))}
      <Figure label="Requests per second" name="rate" of={daemon}>
        {({ requests_per_second: rates, service }) => [
          rateText(rates),
          [<Rates key="rates" rates={rates} />, limitText(service)],
        ]}
      </Figure>
    </section>
  );
}

const faint = { isWide: true, className: "faint" };
const missingColumns: readonly DataColumn<GapSummary>[] = [
  {
    ...{ label: "Series", className: "ellipsis" },
    cell: ({ name, index_id }) => <span title={name ?? undefined}>{name ?? index_id ?? "everything"}</span>,
    note: ({ stream, index_type }) => joined([title(stream), index_type]),
  },
  {
    ...{ label: "State", note: ({ reason }) => reason },
    cell: ({ state }) => [<Mark key="mark" state={state} />, state],
  },
  {
    ...{ label: "Length", field: "seconds", format: duration },
    note: ({ ranges }) => (ranges > 1 ? `${brief(ranges)} ranges` : ""),
  },
  {
    ...{ label: `Range (${zoneName()})`, ...faint },
    cell: ({ from_time, to_time }) => `${minuteOf(from_time)} → ${minuteOf(to_time)}`,
  },
  { label: "Leaves the window", ...faint, cell: ({ lost_at }) => minuteOf(lost_at) || "–" },
];

function missingNote({ open, lost, parts }: GapSummaryResult): string {
  if (open + lost === 0) return "";
  const more = open + lost > parts.length ? `, the longest ${count(parts.length)} are listed` : "";
  return `series: ${count(open)} open, ${count(lost)} lost${more}`;
}

function Missing({ daemon }: { daemon: LiveAnswer<DaemonAnswer> }) {
  const gaps = useLivePoll("missing", {}, { what: "the gaps", seconds: 20, throttleSeconds: 2 });
  const head = ["Open and lost", <Age key="age" name="missing" of={gaps} daemon={daemon} />];
  const answer = shownIn(gaps);
  return (
    <Card name="missing" title={head} note={answer && missingNote(answer)} of={[gaps]} room="line">
      {({ parts, lines }) => (
        <DataTable
          {...{ id: "missing", label: "Open and lost", columns: missingColumns, rows: parts, step: 8 }}
          empty={lines > 0 ? "Nothing is missing." : "Nothing is selected yet."}
        />
      )}
    </Card>
  );
}

type Withdrawals = WarehouseStatus["withdrawals"];

function withdrawalRemark({ index_type, name, rows, from_time, believed_at }: Withdrawals[number]): string {
  const what = `${countNoun(rows, "row")} of ${index_type} ${name} since ${minuteOf(from_time)}`;
  return believed_at ? `withdrew ${what}` : `no longer serves ${what}: unconfirmed`;
}

function remarkOf(stream: StreamStatus, withdrawals: Withdrawals): string {
  const scopes = stream.missing_scopes.length > 0 ? `lacks ${stream.missing_scopes.join(", ")}` : "";
  const own = withdrawals.filter((withdrawal) => withdrawal.stream === stream.stream);
  const more = own.length > 3 ? `and ${own.length - 3} more withdrawals` : "";
  const offset = stream.live_offset_ms === null ? "" : `websocket ${stream.live_offset_ms} ms off REST`;
  return joined([scopes, stream.last_error, ...own.slice(0, 3).map(withdrawalRemark), more, offset]);
}

type StreamRow = StreamStatus & { readonly remark: string };

const streamColumns: readonly DataColumn<StreamRow>[] = [
  {
    label: "Stream",
    cell: ({ stream, remark }) => [title(stream), <span key="note" class="soft narrow" children={remark} />],
  },
  { label: "Newest", className: "age", field: "newest_age_s", format: duration },
  { label: "Rows", className: "number", cell: ({ rows }) => <Brief of={rows} /> },
  {
    ...{ label: `Covered (${zoneName()})`, ...faint },
    cell: ({ from_time, to_time }) =>
      from_time ? `${minuteOf(from_time).slice(0, 10)} → ${minuteOf(to_time)}` : "",
  },
  ...gapStates.map((state) => ({
    label: title(state),
    value: (stream: StreamRow) => stream[state] || null,
    format: brief,
  })),
  { label: "Remark", ...faint, className: "faint wraps", cell: ({ remark }) => remark },
];

function Streams({ status }: Pick<FiguresProps, "status">) {
  return (
    <Card name="streams" title="Streams" of={[status]} room="table">
      {({ streams, withdrawals }) => (
        <DataTable
          {...{ id: "streams", label: "Streams", columns: streamColumns }}
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

const shareColumns: readonly DataColumn<ReturnType<typeof listShareParts>[number]>[] = [
  { label: "Part", className: "ellipsis", field: "name", note: ({ what }) => what },
  { label: "State", className: "faint wraps", field: "state" },
];

function Shared({ shared }: { shared: NonNullable<DaemonAnswer["shared"]> }) {
  const error = shared.last_error === null ? "" : ` · ${shared.last_error}`;
  const note = `${shared.name}: ${describeShare(shared, duration)}${error}`;
  const parts = listShareParts(shared, duration);
  return (
    <Card name="shared" title="Shared warehouse" note={note}>
      {parts.length > 0 && (
        <DataTable
          {...{ id: "shared-parts", label: "Shared warehouse", columns: shareColumns, rows: parts }}
        />
      )}
    </Card>
  );
}

type Serve = NonNullable<DaemonAnswer["serve"]>;

const clientColumns = (now: string): readonly DataColumn<Serve["clients"][number]>[] => [
  { label: "Client", cell: ({ client_id }) => client_id || "no token" },
  { label: "Address", field: "address" },
  { label: "Reads", cell: ({ is_replay }) => (is_replay ? "a replay" : "live ticks") },
  { label: "Subscriptions", field: "subscriptions", format: count },
  { label: "Messages", field: "sent", format: count },
  { label: "Connected", value: (row) => secondsBetween(row.connected_at, now), format: duration },
];

function Served({ serve, now }: { serve: Serve; now: string }) {
  const dropped = serve.dropped > 0 ? ` · ${countNoun(serve.dropped, "slow client")} dropped` : "";
  const note = `${serve.address} · ${countNoun(serve.requests, "request")}${dropped}`;
  return (
    <Card name="serve" title="Served" note={note}>
      <DataTable
        {...{ id: "serve-clients", label: "Served", columns: clientColumns(now), rows: serve.clients }}
        empty="Nobody is connected to the websocket."
      />
    </Card>
  );
}

const errorColumns = (now: string): readonly DataColumn<DaemonAnswer["errors"][number]>[] => [
  {
    ...{ label: "Last", className: "faint" },
    cell: ({ last_at }) => <span title={last_at}>{`${duration(secondsBetween(last_at, now))} ago`}</span>,
  },
  {
    ...{ label: "Error", className: "wraps", field: "message" },
    note: ({ where, code, count: times }) => joined([where, code, times > 1 ? `${count(times)} times` : ""]),
  },
];

function Sync() {
  const throttleSeconds = 2;
  const daemon = useLivePoll("daemon", {}, { what: "the daemon’s state", seconds: 2, throttleSeconds });
  const status = useLivePoll("status", {}, { what: "the streams", seconds: 5, throttleSeconds });
  const { shared, serve, started_at = "", generated_at: now = "", backfill } = shownIn(daemon) ?? {};
  const tone = daemon.hasFailed ? "ill" : (daemon.value?.tone ?? "busy");
  const since = `Running for ${duration(secondsBetween(started_at, now))}`;
  const sentence = (
    <span key="sentence" id="sentence" role="status">
      <Reading of={[daemon]}>{(one) => one.sentence}</Reading>
    </span>
  );
  return (
    <Sheet
      {...{ name: "sync", windowTitle: `${tone === "ill" ? "✕ " : ""}Sync · mds-sync` }}
      title={[<Dot key="dot" tone={tone} />, sentence]}
      note={now && `${since}${backfill ? ` · ${describeBackfill(backfill)}` : ""}`}
    >
      <Figures daemon={daemon} status={status} />
      <Missing daemon={daemon} />
      <Coverage age={(coverage) => <Age name="coverage" of={coverage} daemon={daemon} />} />
      <Streams status={status} />
      {shared && <Shared shared={shared} />}
      {serve && <Served serve={serve} now={now} />}
      <Card name="errors" title="Last errors" of={[daemon]}>
        {({ errors, generated_at }) => (
          <DataTable
            {...{ id: "errors", label: "Last errors", rows: errors, empty: "None since the start." }}
            columns={errorColumns(generated_at)}
          />
        )}
      </Card>
      <p class="soft" id="warehouse" children={shownIn(status)?.warehouse} />
    </Sheet>
  );
}

mountPage(<Sync />);
