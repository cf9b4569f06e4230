// The address of a page: the path names what is shown, the query how. Back and Forward go through what a person chose.

import { nameToSlug, pagePath } from "../../../model/answers/page-address.ts";
import { findClosestWords } from "../../../model/did-you-mean.ts";
import { element, showEmpty } from "./page-base.ts";

const MAX_NEAR_NAMES = 5;

/** The name in the path; empty if there is none. */
export function nameInPath(): string {
  const [, , slug = ""] = location.pathname.split("/");
  try {
    return decodeURIComponent(slug);
  } catch {
    return slug;
  }
}

/** `push`: a person chose it, and Back returns to what was shown before; `replace`: the same choice, seen or written differently. */
export function saveAddress(how: "push" | "replace", path: string, params: URLSearchParams): void {
  // A colon need not be escaped, and times have many.
  const query = String(params).replaceAll("%3A", ":");
  const address = `${path}${query && `?${query}`}`;
  if (address === `${location.pathname}${location.search}`) return;
  if (how === "push") history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

/** Calls `listener` after Back and Forward: the address has changed, and the page must follow. */
export function onNavigate(listener: () => void): void {
  window.addEventListener("popstate", listener);
}

/** Whether a name in a path means this one: `btc-usd` is `BTC/USD`. */
export function isNamed(name: string, slug: string): boolean {
  return nameToSlug(name).toLowerCase() === nameToSlug(slug).toLowerCase();
}

/** Says in place of the page's cards that a name is unknown, with links to near names. */
export function showUnknown(
  page: Parameters<typeof pagePath>[0],
  what: string,
  known: readonly string[],
): void {
  const name = nameInPath();
  const near = findClosestWords(name, known.map(nameToSlug)).slice(0, MAX_NEAR_NAMES);
  showUnknownName(
    `${what} “${name}”.`,
    near.map((one) => ({ label: one, href: pagePath(page, one) })),
  );
}

interface NearName {
  readonly label: string;
  readonly href: string;
}

export function showUnknownName(text: string, near: readonly NearName[]): void {
  const links = near.flatMap(({ label, href }) => [" ", element("a", { href }, label)]);
  showEmpty(near.length > 0 ? `${text} Similar:` : text, ...links);
}
