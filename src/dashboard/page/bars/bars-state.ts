// What /bars shows, and how it gets there: the address, the series, what is loaded of it, and what was committed since.

import { MAX_BARS, type SecondsRange } from "../../../model/answers/chart-bars.ts";
import type { SeriesMatch } from "../../../model/answers/heatmap.ts";
import { pagePath } from "../../../model/answers/page-address.ts";
import type { CommitNews } from "../../../model/answers/ticks.ts";
import { type BarWidth, barWidths, isBarWidth, MICROS_PER_SECOND } from "../../../model/time.ts";
import { nameInPath, saveAddress, toAddress } from "../shared/address.ts";
import { describeUnknown } from "../shared/combobox.tsx";
import { throttle } from "../shared/live.tsx";
import { describeError, fetchJson, RETRY_SECONDS, repeatWhileVisible } from "../shared/page-base.ts";
import { pickExactly, pickedParams, rangeOf, readPicked, toMinute } from "../shared/time-picker.tsx";
import { barChart } from "./bar-chart.ts";
import { BarFeed } from "./bar-feed.ts";
import type { ShownBars } from "./bar-report.tsx";
import { buildSlots, type Comparison, comparisons, precisionFor, secondsOf, timeAt } from "./bar-slots.ts";
import { barsReader, SeriesOverlays } from "./overlays.ts";

const POLL_SECONDS = 15;
/** What a commit has changed, be it a tick or a page of history, is read at once, but this often at most. */
const CHANGED_SECONDS = 5;
/** So many bars before the end of what is loaded, more is loaded. */
const LOAD_AHEAD_BARS = 50;
const VIEW_REST_MS = 300;
/** A width that gives fewer bars than the least, or too many, shows the usual number. */
const MIN_BARS = 30;
const DEFAULT_BARS = 300;

const compared = Object.keys(comparisons) as Comparison[];
export const widths = Object.keys(barWidths).filter(isBarWidth);

export class BarsState {
  readonly #onChange: () => void;
  readonly overlays: SeriesOverlays;
  width: BarWidth = "1h";
  isLog = false;
  /** The figure of a ticker that the address names; that which is shown; all that it has. */
  of = "";
  figure = "";
  figures: readonly string[] = [];
  picked: ReturnType<typeof readPicked>;
  series: SeriesMatch | undefined;
  /** In place of the bars: the name of the address is unknown, or nothing is stored. */
  unknown: { readonly text: string; readonly near: readonly string[] } | undefined;
  shown: ShownBars | undefined;
  inView: SecondsRange | undefined;
  /** How many compared series have a line. */
  lines: number | undefined;
  /** The start of the bar under the pointer. */
  pointedAt: number | undefined;
  /** What to say in place of the bars; empty: they may be shown. */
  note = "";
  hasFailed = false;
  remark = "";
  #chart: ReturnType<typeof barChart> | undefined;
  #feed: BarFeed | undefined;
  #readNow = () => {};
  /** Where the next read begins, if a commit changed more than the end. */
  #changedFrom = Number.POSITIVE_INFINITY;
  /** The daemon's clock minus the browser's clock, in seconds. */
  #clockOffset = 0;
  #viewTimer: number | undefined;
  #typedWidth = "";
  readonly #readChanged = throttle(CHANGED_SECONDS, () => this.#readNow());

  constructor(onChange: () => void) {
    this.#onChange = onChange;
    this.overlays = new SeriesOverlays(this.now, (lines) => {
      this.#chart?.showOverlays(lines, this.overlays.how);
      this.lines = lines.filter(({ points }) => points.length > 0).length;
      onChange();
    });
    this.picked = readPicked(new URLSearchParams(location.search), "1w", this.now());
    this.#begin();
  }

  readonly now = () => Date.now() / 1000 + this.#clockOffset;

  /** Draws into `container`, and reads as long as the page is open. */
  start(container: HTMLElement): void {
    this.#chart = barChart(container, {
      onPoint: (slot) => this.#set({ pointedAt: slot?.time }),
      onView: (from, to, isByHand) => this.#followView(from, to, isByHand),
    });
    this.#readFromUrl();
    // Retry the start until there is something to show.
    const bars = repeatWhileVisible(
      POLL_SECONDS,
      () => this.#refresh(),
      (error) =>
        this.#showNote(`Could not read the bars: ${describeError(error)}, again in ${RETRY_SECONDS} s`, true),
    );
    this.#readNow = () => void bars.now();
  }

  applyTheme(): void {
    this.#chart?.applyTheme();
    void this.overlays.load();
  }

  #addressOf(range: Readonly<Record<string, string>>): string {
    const query = new URLSearchParams({
      ...{ width: this.width, ...range },
      ...(this.of && { of: this.of }),
      ...(this.isLog ? { log: "1" } : {}),
    });
    const { list, how } = this.overlays;
    for (const { series, slug } of list) query.append("with", series?.slug ?? slug);
    if (list.length > 0 && how !== "course") query.set("as", how);
    return toAddress(pagePath("bars", this.series?.slug ?? nameInPath()), query);
  }

  #saveToUrl(how: "push" | "replace"): void {
    if (this.series) saveAddress(how, this.#addressOf(pickedParams(this.picked)));
  }

  /** Takes everything but the series from the address. */
  #readFromUrl(): void {
    const params = new URLSearchParams(location.search);
    this.width = widths.find((one) => one === params.get("width")) ?? "1h";
    this.isLog = params.get("log") === "1";
    this.of = params.get("of") ?? "";
    this.picked = readPicked(params, "1w", this.now());
    this.overlays.setSlugs(params.getAll("with"));
    this.overlays.how = compared.find((how) => how === params.get("as")) ?? "course";
    this.#showScale();
  }

  /** The gap, and as much on both sides. */
  hrefOfGap({ from, to }: SecondsRange): string {
    return this.#addressOf({ from: toMinute(2 * from - to), to: toMinute(2 * to - from) });
  }

  navigate(): void {
    this.series = undefined;
    this.#readFromUrl();
    this.#begin();
    this.#readNow();
  }

  #begin(): void {
    clearTimeout(this.#viewTimer);
    this.shown = undefined;
    this.#feed = undefined;
    this.#changedFrom = Number.POSITIVE_INFINITY;
    this.#showNote("Reading the bars …");
  }

  #set(change: Partial<Pick<BarsState, "pointedAt" | "note" | "hasFailed" | "remark">>): void {
    Object.assign(this, change);
    this.#onChange();
  }

  readonly #showNote = (note: string, hasFailed = false) => this.#set({ note, hasFailed });

  #choose(): void {
    this.#begin();
    this.#saveToUrl("push");
    this.#readNow();
  }

  async #load(): Promise<void> {
    if (this.#clockOffset === 0) {
      const daemon = await fetchJson("daemon");
      this.#clockOffset = (Date.parse(daemon.generated_at) - Date.now()) / 1000;
    }
    const name = nameInPath();
    const found = this.series ? [this.series] : await fetchJson("series", { name });
    // Someone has gone elsewhere meanwhile.
    if (name !== nameInPath()) return;
    const [first] = found;
    // Without a name, the best-known series is the first.
    const isKnown = first && (first === this.series || name === "" || first.match === "exact");
    this.series = isKnown ? first : undefined;
    const text = name === "" ? "No index ticks or daily bars are synced yet." : describeUnknown(name);
    this.unknown = isKnown ? undefined : { text, near: name === "" ? [] : found.map(({ slug }) => slug) };
    if (!this.series) return this.#showNote("");
    if (!this.isAvailable(this.width)) this.width = "1d";
    this.#saveToUrl("replace");
    const { series, width } = this;
    const own = new BarFeed({ series, width, now: this.now, read: barsReader(this.of) });
    this.#feed = own;
    const range = rangeOf(this.picked, this.now());
    await own.start(range);
    this.#show(own, range);
  }

  async #refresh(): Promise<void> {
    const own = this.#feed;
    if (!own?.loaded || own.isOutdated) return this.#load();
    const { isLive } = own;
    const from = this.#changedFrom;
    this.#changedFrom = Number.POSITIVE_INFINITY;
    await own.refresh(from);
    this.#show(own, undefined, isLive);
  }

  /** Loads more where a reader comes near an end; once the view rests, the address and the gaps follow it. */
  #followView(from: number, to: number, isByHand: boolean): void {
    const { shown } = this;
    const feed = this.#feed;
    if (!feed || !shown) return;
    if (from < LOAD_AHEAD_BARS) void this.#extend(feed, () => feed.loadOlder());
    if (to > shown.slots.length - LOAD_AHEAD_BARS) void this.#extend(feed, () => feed.loadNewer());
    clearTimeout(this.#viewTimer);
    this.#viewTimer = setTimeout(() => {
      const { slots } = this.shown ?? shown;
      this.inView = { from: timeAt(slots, from), to: timeAt(slots, to + 1) };
      if (isByHand) {
        // A view that reaches the last bar has no end: it follows.
        const isAtEnd = feed.isLive && to >= slots.length - 1;
        this.picked = pickExactly(isAtEnd ? { from: this.inView.from } : this.inView);
        this.#saveToUrl("replace");
      }
      this.#onChange();
    }, VIEW_REST_MS);
  }

  async #extend(own: BarFeed, load: () => Promise<boolean>): Promise<void> {
    try {
      if (await load()) this.#show(own);
    } catch (error) {
      // What is loaded stays; the next scroll tries again.
      this.#set({ remark: `Could not load more bars: ${describeError(error)}.` });
    }
  }

  /** Brings `view` into view; `isLive`: what is new at the end was committed just now. */
  #show(own: BarFeed, view?: ReturnType<typeof rangeOf>, isLive = false): void {
    const { loaded } = own;
    if (!loaded || own !== this.#feed) return;
    Object.assign(this, { figure: loaded.of, figures: loaded.figures });
    const highs = loaded.bars.map(([, , high]) => high ?? 0);
    this.shown = { ...loaded, slots: buildSlots(loaded), precision: precisionFor(highs) };
    const first = this.shown.slots[0]?.time ?? 0;
    if (view) this.inView = { from: Math.max(view.from, first), to: view.to ?? loaded.to };
    this.#chart?.show(this.shown, view, isLive);
    const none = loaded.bars.length > 0 ? "" : "No bars in this range.";
    this.remark = loaded.is_cut ? "The read took too long: scroll back for older bars." : none;
    void this.overlays.load(this.shown);
    this.#showNote("");
  }

  follow({ ticks, ranges }: CommitNews): void {
    const { series } = this;
    const own = ticks.findLast(([type, id]) => type === series?.index_type && id === series.index_id);
    if (own) {
      this.#feed?.setLastPrice(own[3]);
      this.#readChanged();
    }
    const { series: key, from, to } = this.#feed?.loaded ?? { from: 0, to: 0 };
    const range = ranges.find(([of]) => of === key);
    if (!range) return;
    const changed = { from: range[1] / MICROS_PER_SECOND, to: range[2] / MICROS_PER_SECOND };
    if (changed.to <= from || (changed.from >= to && !this.#feed?.isLive)) return;
    this.#changedFrom = Math.min(this.#changedFrom, changed.from);
    this.#readChanged();
  }

  /** Events may have been missed. */
  readAll(): void {
    this.#changedFrom = 0;
    this.#readNow();
  }

  isAvailable(one: BarWidth): boolean {
    return this.series?.has_ticks !== false || one === "1d";
  }

  /** Whether the range has enough bars, and is short enough to be loaded at once. */
  #isFitting(one: BarWidth, minBars = 2): boolean {
    const { from, to = this.now() } = rangeOf(this.picked, this.now());
    const count = (to - from) / secondsOf(one);
    return this.isAvailable(one) && count >= minBars && count < MAX_BARS;
  }

  setSeries(series: SeriesMatch | undefined, of = ""): void {
    this.series = series;
    this.of = of;
    this.#choose();
  }

  /** The range gives way to a width that does not fit it. */
  setWidth(chosen: BarWidth): void {
    if (!this.isAvailable(chosen) || chosen === this.width) return;
    this.width = chosen;
    const { to } = rangeOf(this.picked, this.now());
    const from = (to ?? this.now()) - DEFAULT_BARS * secondsOf(chosen);
    if (!this.#isFitting(chosen, MIN_BARS))
      this.picked = pickExactly(to === undefined ? { from } : { from, to });
    this.#choose();
  }

  /** The width gives way to a range that it does not fit. */
  setPicked(picked: BarsState["picked"]): void {
    this.picked = picked;
    if (!this.#isFitting(this.width)) this.width = widths.find((one) => this.#isFitting(one)) ?? "1d";
    this.#choose();
  }

  /** `5` is 5m, `1` and `5` is 15m, `d` is 1d: whatever distinguishes one width from the others. */
  typeWidth(key: string): void {
    const typed = this.#typedWidth + key;
    const candidates = /^[0-9mhd]$/.test(key) ? widths.filter((one) => one.startsWith(typed)) : [];
    this.#typedWidth = candidates.length > 1 ? typed : "";
    const [only = widths.find((one) => one === `1${key}`)] = candidates;
    if (candidates.length <= 1 && only) this.setWidth(only);
  }

  /** The scale or the compared series have changed. */
  rescale(isLog = this.isLog): void {
    this.isLog = isLog;
    this.#saveToUrl("push");
    this.#showScale();
    this.#onChange();
  }

  compare(how: Comparison): void {
    this.overlays.how = how;
    this.rescale();
    void this.overlays.load();
  }

  /** The course of several series is comparable only if all begin at 100; that excludes a log scale. */
  #showScale(): void {
    const { list, how } = this.overlays;
    const isAlone = list.length === 0;
    this.#chart?.setScale({ isLog: this.isLog && isAlone, isRebased: !isAlone && how === "course" });
  }
}
