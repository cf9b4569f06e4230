// The address of a page: the path names what is shown, the query how. Back and Forward go through what a person chose.
//   const [view, go] = useAddress("exchanges", { q: "", sort: "-volume" });   // and their usual values, which no address has
//   go({ name: "BTC/USD" });  go({ q: "kraken" }, "replace");

import { useLayoutEffect } from "preact/hooks";
import { nameToSlug, pagePath } from "../../../model/answers/page-address.ts";
import { useRedraw } from "./page-base.ts";

/** The name in the path; empty if there is none. */
export function nameInPath(): string {
  const [, , slug = ""] = location.pathname.split("/");
  try {
    return decodeURIComponent(slug);
  } catch {
    return slug;
  }
}

export function toAddress(path: string, params: URLSearchParams): string {
  // A colon need not be escaped, and times have many.
  const query = String(params).replaceAll("%3A", ":");
  return `${path}${query && `?${query}`}`;
}

/** `push`: a person chose it, and Back returns to what was shown before; `replace`: the same choice, seen or written differently. */
export function saveAddress(how: "push" | "replace", address: string): void {
  if (address === `${location.pathname}${location.search}`) return;
  if (how === "push") history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

type View<V> = V & { readonly name: string };

/** The view that the address holds, and the way to another one. `page`: its path names what is shown. */
export function useAddress<const V extends Readonly<Record<string, string>>>(
  page: Parameters<typeof pagePath>[0] | undefined,
  usual: V,
) {
  type Params = { readonly [K in keyof V]: string };
  const redraw = useRedraw();
  useLayoutEffect(() => {
    window.addEventListener("popstate", redraw);
    return () => window.removeEventListener("popstate", redraw);
  }, []);
  const read = (): View<Params> => {
    const query = new URLSearchParams(location.search);
    const params = Object.entries(usual).map(([key, value]) => [key, query.get(key) ?? value]);
    return { name: "", ...Object.fromEntries(params), ...(page ? { name: nameInPath() } : {}) };
  };
  const go = (change: Partial<View<Params>>, how: "push" | "replace" = "push") => {
    const { name, ...others }: View<Readonly<Record<string, string>>> = { ...read(), ...change };
    const chosen = page ? others : { name, ...others };
    const unusual = Object.entries(chosen).filter(([key, value]) => value !== (usual[key] ?? ""));
    const path = page && name ? pagePath(page, name) : location.pathname;
    saveAddress(how, toAddress(path, new URLSearchParams(unusual)));
    window.dispatchEvent(new PopStateEvent("popstate"));
  };
  return [read(), go] as const;
}

/** Whether a name in a path means this one: `btc-usd` is `BTC/USD`. */
export const isNamed = (name: string, slug: string): boolean =>
  nameToSlug(name).toLowerCase() === nameToSlug(slug).toLowerCase();
