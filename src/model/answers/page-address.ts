/** A name as the path of a page has it: a slash would begin another part of the path. */
export function nameToSlug(name: string): string {
  return name.replaceAll("/", "-");
}

/** How pages call the kind of a series. */
export const familyOf = (type: string) =>
  ({ exchange_ticks: "ticker", derivative_ticks: "contract", market_caps: "market cap" })[type] ?? type;

/** `/exchanges/BTC-USD` */
export function pagePath(page: "assets" | "bars" | "exchanges" | "derivatives", name: string): string {
  return `/${page}/${encodeURIComponent(nameToSlug(name)).replaceAll("%3A", ":")}`;
}
/** One page that a search leads to. */
export interface SearchMatch {
  readonly group: "Assets" | "Bars" | "Exchanges" | "Derivatives" | "Relations";
  readonly name: string;
  readonly note: string;
  readonly href: string;
}
