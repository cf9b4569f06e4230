import type { Page, Route } from "playwright-core";

/** Holds back the requests of pages to one path, then lets them fail, then lets them through. */
export async function blockRequests(page: Page, path: string) {
  const held: Route[] = [];
  let failure: string | undefined;
  const fail = (route: Route, body: string) => route.fulfill({ status: 503, body }).catch(() => {});
  const isBlocked = (url: URL) => url.pathname === path;
  await page.route(isBlocked, async (route) => {
    held.push(route);
    if (failure !== undefined) await fail(route, failure);
  });
  return {
    isReached: () => held.length > 0,
    async failWith(body: string): Promise<void> {
      failure = body;
      await Promise.all(held.map((route) => fail(route, body)));
    },
    letThrough: () => page.unroute(isBlocked),
  };
}
