import { CoveredRanges } from "../../../library/reading/covered-ranges.ts";
import { formatExact, parseRowAside } from "../../../library/reading/format-exact.ts";
import type { ReadPlan } from "../../../library/reading/read-plan.ts";
import { readTickBlocks } from "../../../library/reading/tick-reader.ts";
import type { TimeZone } from "../../../library/reading/time-zone.ts";
import type { Connection } from "../../../warehouse/sqlite/connection.ts";

/**
 * The ticks of a series as NDJSON, block by block: the same text as from rows, at a third of the cost. A tick has one text for
 * each number, which serves as the number and as its exact digits.
 */
export function* renderTickLines(
  connection: Connection,
  { series, range }: Pick<ReadPlan, "series" | "range">,
  zone: TimeZone,
  onRows: (count: number) => void,
): Generator<string> {
  const { key, index_type, index_id, name } = series;
  if (key === null) return;
  const labels = JSON.stringify({ index_type, index_id, name }).slice(0, -1);
  const covered = new CoveredRanges(connection, "index_ticks", key, range);
  for (const block of readTickBlocks(connection, series, range)) {
    let text = "";
    for (const [ts, price, volume, tickVolume, source, asideText] of block) {
      text += `${labels},"ts":${ts},"time":"${zone.format(ts)}"`;
      if (asideText === null) {
        text += `,"price":${bothForms("price", price)},"volume":${bothForms("volume", volume)},"tick_volume":${bothForms("tick_volume", tickVolume)}`;
      } else {
        const aside = parseRowAside(asideText);
        for (const [column, value] of [
          ["price", price],
          ["volume", volume],
          ["tick_volume", tickVolume],
        ] as const)
          text += `,"${column}":${value},"${column}_exact":${JSON.stringify(formatExact(value, aside[column]))}`;
      }
      text += `,"is_settled":${covered.contains(ts) ? 1 : 0},"source":"${source === 0 ? "rest" : "live"}",`;
      text += asideText === null ? '"quality":null,"extra":null}\n' : remarks(asideText);
    }
    onRows(block.length);
    yield text;
  }
}

/** The number and, after it, the column with its exact digits. */
function bothForms(column: "price" | "volume" | "tick_volume", value: number | null): string {
  if (value === null) return `null,"${column}_exact":null`;
  const number = String(value);
  const exact = number.includes("e") ? formatExact(value) : number;
  return `${number},"${column}_exact":"${exact}"`;
}

function remarks(asideText: string): string {
  const { quality = null, extra = null } = parseRowAside(asideText);
  return `"quality":${JSON.stringify(quality)},"extra":${JSON.stringify(extra)}}\n`;
}
