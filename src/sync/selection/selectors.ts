import {
  formatUnknownNames,
  NOTHING_SELECTED,
  resolveSelector,
  type Selection,
  type Selector,
} from "../../model/selector.ts";
import { indexTypes } from "../../model/stream-columns.ts";
import { type Stream, streamTable } from "../../model/streams.ts";
import type { Problem, SyncSettings } from "../context/context.ts";
import { liquidIndexSymbols } from "../fetch/liquid-indices.ts";
import type { Directory } from "./targets.ts";

type List = "GWA" | "MWA" | "LX" | "exchanges";

interface SelectorSetting {
  readonly stream: Stream;
  /** For example `sync.ohlcv.GWA`. */
  readonly setting: string;
  readonly list: List;
  readonly selector: Selector;
}

/** Every selector of the settings, and what it selects from. */
function listSelectors({ streams }: SyncSettings): SelectorSetting[] {
  const { exchangeTickers, derivatives } = streams;
  const found: SelectorSetting[] = [];
  const add = (stream: Stream, name: string, list: List, selector: Selector) =>
    found.push({ stream, setting: `sync.${streamTable[stream].setting}.${name}`, list, selector });
  for (const [stream, selectors] of [
    ["index_ticks", streams.intraday] as const,
    ["ohlcv", streams.ohlcv] as const,
  ])
    if (selectors !== false) for (const type of indexTypes) add(stream, type, type, selectors[type]);
  if (exchangeTickers !== false) {
    add("exchange_ticks", "exchanges", "exchanges", exchangeTickers.exchanges);
    add("exchange_ticks", "markets", "MWA", exchangeTickers.markets);
  }
  if (derivatives !== false) add("derivative_contracts", "exchanges", "exchanges", derivatives.exchanges);
  return found;
}

/** Whether any selector needs the ranking by market capitalisation: only assets and markets have a rank. */
export function needsRanking(settings: SyncSettings): boolean {
  return listSelectors(settings).some(
    ({ selector, list }) => selector.kind === "top" && (list === "GWA" || list === "MWA"),
  );
}

export function neededLists(settings: SyncSettings): readonly List[] {
  const used = listSelectors(settings).filter(({ selector }) => selector.kind !== "none");
  return used.map(({ list }) => list);
}

export function needsLiquidIndices(settings: SyncSettings): boolean {
  return neededLists(settings).includes("LX");
}

/** A part of a selector that could not be resolved as written. */
export interface SelectorNotice extends Pick<SelectorSetting, "stream" | "setting"> {
  /** `shared`: several candidates have the name. `unresolved`: no ranking is known, or nothing that it could select. */
  readonly kind: "unknown" | "shared" | "unresolved";
  /** What an unresolved one lacks. */
  readonly missing: Selection["missing"];
  readonly names: readonly string[];
  /** The closest known name of each unknown one that has one. */
  readonly suggestions: Readonly<Record<string, string>>;
}

export function findNotices(settings: SyncSettings, directory: Directory): SelectorNotice[] {
  return listSelectors(settings).flatMap(({ stream, setting, list, selector }) => {
    const selection = resolveSelector(selector, directory[list], directory.ranking);
    const { unknownNames, ambiguousNames, suggestions, missing } = selection;
    const notices: SelectorNotice[] = [];
    const notice = { stream, setting, missing, names: [], suggestions: {} };
    if (unknownNames.length > 0)
      notices.push({ ...notice, kind: "unknown", names: unknownNames, suggestions });
    if (ambiguousNames.length > 0) notices.push({ ...notice, kind: "shared", names: ambiguousNames });
    if (missing) notices.push({ ...notice, kind: "unresolved" });
    return notices;
  });
}

/** What is wrong with a selector, in one line with its remedy. */
export function describeNotice({ setting, kind, missing, names, suggestions }: SelectorNotice): string {
  switch (kind) {
    case "unknown": {
      const known = Object.keys(suggestions).length === names.length;
      const list = formatUnknownNames({ unknownNames: names, suggestions });
      return `${setting} names ${list}, which the service does not list${known ? "" : ": check the spelling"}`;
    }
    case "shared":
      return `${setting}: several have the name ${names.join(", ")}, and all of them are selected`;
    case "unresolved":
      return missing === "ranking"
        ? `${setting} selects the largest assets, but no ranking is known: it needs the market capitalisations`
        : `${setting} ${NOTHING_SELECTED}: the service has shown none. If it has none, set this to none`;
  }
}

/** Problems of selectors that could not be resolved. `liquid`: the liquid indices that are known. */
export function noticesToProblems(notices: readonly SelectorNotice[], liquid: Directory["LX"] = []) {
  return notices.flatMap((notice): Problem[] => {
    const { stream, setting, kind, names } = notice;
    if (kind === "shared") return [];
    const message =
      kind === "unknown" && setting.endsWith(".LX")
        ? `${setting} names ${names.join(", ")}, ${describeUnknownLiquid(names, liquid)}`
        : describeNotice(notice);
    return [{ stream, what: setting, code: `selector_${kind}`, message }];
  });
}

/** No lookup lists the liquid indices, so an unknown name may be right: then the remedy is its id. */
function describeUnknownLiquid(names: readonly string[], liquid: Directory["LX"]): string {
  const [first = ""] = names.filter((name) => Object.hasOwn(liquidIndexSymbols, name));
  if (first === "")
    return `but the liquid indices are ${Object.keys(liquidIndexSymbols).join(", ")}: check the spelling`;
  const unnamed = liquid.filter(({ labels }) => labels.length === 0).map(({ id }) => id);
  if (unnamed.length === 0)
    return "which the service has not shown: it needs the scope read:LX, or its id in service.lxIndexIds";
  return `but which index that is, neither a price nor the live feed has shown: set service.lxIndexIds, { ${first}: … } with one of ${unnamed.join(", ")}`;
}
