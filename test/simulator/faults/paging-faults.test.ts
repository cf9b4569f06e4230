import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { FaultClient, type Page } from "../../support/simulator/fault-client.ts";

let client: FaultClient;
beforeAll(async () => {
  client = await FaultClient.start();
});
afterEach(() => client.simulator.setFaults(""));
afterAll(() => client.simulator.stop());

const times = ({ content }: Page) => content.map(({ timestamp }) => timestamp);
const ids = ({ content }: Page) => content.map(({ id }) => id);

/** The first pages of a walk along nextId, with and without faults. */
async function walk(pages: number, size = 5): Promise<Page[]> {
  const walked: Page[] = [];
  let cursor: string | null | undefined;
  for (let page = 0; page < pages; page++) {
    const answer = await client.getPage(client.pagePath(size, cursor));
    walked.push(answer);
    cursor = answer.nextId;
  }
  return walked;
}

describe("faults of paging", () => {
  it("repeat-page responds to a cursor with the page that returned it", async () => {
    client.simulator.setFaults("GET /index-ticker repeat-page times=1 page=later");
    const [first, second, third] = await walk(3);
    expect(second).toEqual(first);
    expect(third?.nextId).not.toBe(first?.nextId);
  });

  it("swap-pages swaps the rows of exactly two pages", async () => {
    const right = (await walk(4)).map(ids);
    client.simulator.setFaults("GET /index-ticker swap-pages page=first");
    expect((await walk(4)).map(ids)).toEqual([right[1], right[0], right[2], right[3]]);
  });

  it("next-id same leads to the same page forever", async () => {
    client.simulator.setFaults("GET /index-ticker next-id same page=later");
    const walked = await walk(5);
    expect(new Set(walked.map(({ nextId }) => nextId)).size).toBe(1);
    expect(ids(walked[4] as Page)).toEqual(ids(walked[1] as Page));
  });

  it.each([2, 3, 7])("next-id cycle returns after %i pages", async (length) => {
    client.simulator.setFaults(`GET /index-ticker next-id cycle length=${length}`);
    const walked = await walk(1 + 2 * length);
    const cursors = walked.map(({ nextId }) => nextId);
    expect(new Set(cursors).size).toBe(length);
    expect(cursors.slice(length, 2 * length)).toEqual(cursors.slice(0, length));
  });

  it.each([
    ["null", { nextId: null }],
    ["empty", { nextId: "" }],
    ["absent", {}],
  ])("next-id %s ends the list", async (is, ending) => {
    client.simulator.setFaults(`GET /index-ticker next-id ${is}`);
    const { content, ...rest } = await client.getPage(client.pagePath(5));
    expect(content.length).toBe(5);
    expect(rest).toEqual(ending);
  });

  it("empty-page has no rows and the correct nextId", async () => {
    const [right] = await walk(1);
    client.simulator.setFaults("GET /index-ticker empty-page");
    expect(await client.getPage(client.pagePath(5))).toEqual({ content: [], nextId: right?.nextId });
  });

  it("size-cap limits the rows per page, and the walk still sees every row", async () => {
    const right = await client.getPage(client.pagePath(15));
    client.simulator.setFaults("GET /index-ticker size-cap 5");
    const capped = await walk(3, 15);
    expect(capped.map(({ content }) => content.length)).toEqual([5, 5, 5]);
    expect(capped.flatMap(ids)).toEqual(ids(right));
  });

  it.each(["repeat-page page=later", "foreign-rows 1", "lag 10m", "swap-pages page=first"])(
    "size-cap limits the rows of a page with %s, and does not undo it",
    async (fault) => {
      client.simulator.setFaults(`GET /index-ticker ${fault}`);
      const faulty = await walk(3, 5);
      client.simulator.setFaults(`GET /index-ticker ${fault}\nGET /index-ticker size-cap 5`);
      expect((await walk(3, 15)).map(ids)).toEqual(faulty.map(ids));
    },
  );

  it.each(["400", "404"])("dead-cursor %s rejects only startAfter", async (status) => {
    const [right] = await walk(1);
    client.simulator.setFaults(`GET /index-ticker dead-cursor ${status}`);
    expect((await client.get(client.pagePath(5))).status).toBe(200);
    expect((await client.get(client.pagePath(5, right?.nextId))).status).toBe(Number(status));
  });

  it("dead-cursor empty responds to startAfter with an empty page", async () => {
    const [right] = await walk(1);
    client.simulator.setFaults("GET /index-ticker dead-cursor empty");
    expect(await client.getPage(client.pagePath(5, right?.nextId))).toEqual({ content: [] });
  });

  it("page-limit refuses a larger size", async () => {
    client.simulator.setFaults("GET /index-ticker page-limit 5 code=502");
    expect((await client.getPage(client.pagePath(5))).content).toHaveLength(5);
    expect(await client.getPage(client.pagePath(6))).toMatchObject({ status: "BAD_GATEWAY" });
  });

  it("foreign-rows ignores indexId", async () => {
    client.simulator.setFaults("GET /index-ticker foreign-rows");
    const { content } = await client.getPage(client.pagePath(30));
    const indexes = new Set(content.map(({ indexId }) => indexId));
    expect(indexes.size).toBeGreaterThan(3);
    expect(indexes.has(client.firstAssetId)).toBe(true);
  });

  it("foreign-rows adds a row of another series to the page", async () => {
    const right = await client.getPage(client.pagePath(5));
    client.simulator.setFaults("GET /index-ticker foreign-rows 1");
    const { content, nextId } = await client.getPage(client.pagePath(5));
    const own = content.filter(({ indexId }) => indexId === client.firstAssetId);
    expect([content.length, own]).toEqual([6, right.content]);
    expect(nextId).toBe(right.nextId);
  });

  it("order reverses or shuffles the rows of the same page", async () => {
    const right = await client.getPage(client.pagePath(20));
    client.simulator.setFaults("GET /index-ticker order ascending");
    expect(ids(await client.getPage(client.pagePath(20)))).toEqual(ids(right).reverse());
    client.simulator.setFaults("GET /index-ticker order shuffled");
    const shuffled = await client.getPage(client.pagePath(20));
    expect(ids(shuffled)).not.toEqual(ids(right));
    expect(ids(shuffled).sort()).toEqual(ids(right).sort());
  });

  it("stale responds like a cache: old rows, an old Date, and an Age", async () => {
    client.simulator.setFaults("GET /index-ticker stale age=1h");
    const { headers, text } = await client.get("/index-ticker?indexType=GWA");
    expect(times(JSON.parse(text))[0]).toBe("2026-03-01T11:00:00.000Z");
    expect([headers.date, headers.age]).toEqual(["Sun, 01 Mar 2026 11:00:10 GMT", "3600"]);
  });

  it("stale never sends rows newer than its Date, even of a page that is already cached", async () => {
    const page = "/index-ticker?indexType=GWA&timestamp=2026-03-01T11:30:00Z&size=5";
    const fresh = await client.getPage(page);
    client.simulator.setFaults("GET /index-ticker stale age=1h");
    const stale = JSON.parse((await client.get(page)).text);
    expect(times(fresh)[0]).toBe("2026-03-01T11:30:00.000Z");
    expect(times(stale)[0]).toBe("2026-03-01T11:00:00.000Z");
  });

  it("lag sends the rows of a while ago with the present Date, also after a cursor", async () => {
    const page = "/index-ticker?indexType=LX&timestamp=2026-03-01T12:30:00Z&size=6";
    const path = `${page}&indexId=${client.simulator.universe.liquidIndexes[0]?.id}`;
    client.simulator.setFaults("GET /index-ticker lag 30m");
    const { headers, text } = await client.get(path);
    const first = JSON.parse(text);
    expect(times(first)[0]).toBe("2026-03-01T11:30:00.000Z");
    expect([headers.date, headers.age]).toEqual(["Sun, 01 Mar 2026 12:00:10 GMT", undefined]);
    expect(times(await client.getPage(`${path}&startAfter=${first.nextId}`))[0]).toBe(
      "2026-03-01T11:27:00.000Z",
    );
  });

  it("late-rows hides always the same rows, until they are old enough", async () => {
    const path = `/index-ticker?indexType=LX&timestamp=2026-03-01T12:30:00Z&size=100`;
    const all = times(await client.getPage(path));
    client.simulator.setFaults("GET /index-ticker late-rows 5m share=0.3");
    const late = times(await client.getPage(path));
    expect(times(await client.getPage(path))).toEqual(late);
    const hidden = all.length - late.length;
    expect(hidden).toBeGreaterThan(3);
    expect(hidden).toBeLessThan(20);
    const isOld = (time: string | undefined) => String(time) <= "2026-03-01T11:55:10";
    expect(late.filter(isOld)).toEqual(all.filter(isOld));
  });

  it("shrink drops nine of ten rows", async () => {
    const right = await client.getPage("/asset");
    client.simulator.setFaults("GET /asset shrink");
    expect((await client.getPage("/asset")).content.length).toBe(Math.ceil(right.content.length / 10));
  });

  it("withdraw leaves a time out and fills the page with older records", async () => {
    const right = ids(await client.getPage(client.pagePath(20)));
    client.simulator.setFaults(
      "GET /index-ticker withdraw since=2026-03-01T11:58:00Z until=2026-03-01T11:59:30Z",
    );
    const [first, second] = await walk(2);
    expect(times(first as Page)).toEqual([
      "2026-03-01T12:00:00.000Z",
      "2026-03-01T11:59:30.000Z",
      "2026-03-01T11:57:30.000Z",
      "2026-03-01T11:57:00.000Z",
      "2026-03-01T11:56:30.000Z",
    ]);
    expect(first?.nextId).toBe(ids(first as Page).at(-1));
    expect(ids(second as Page)).toEqual(right.slice(8, 13));
  });

  it("second-records lists two records of each moment, which may be on two pages", async () => {
    const right = await client.getPage(client.pagePath(4));
    client.simulator.setFaults("GET /index-ticker second-records 3");
    const [first, second] = await walk(2, 5);
    const listed = [first, second].flatMap((page) => page?.content ?? []);
    expect(listed.map(({ timestamp }) => timestamp)).toEqual(
      times(right)
        .slice(0, 3)
        .flatMap((time) => [time, time]),
    );
    expect(new Set(listed.map(({ id }) => id)).size).toBe(6);
    expect(listed.filter((_, i) => i % 2 === 0)).toEqual(right.content.slice(0, 3));
    for (let i = 0; i < 6; i += 2) expect(listed[i + 1]?.price).toBe(`${listed[i]?.price}7`);
  });

  it("retention ends the history at an age", async () => {
    client.simulator.setFaults("GET /index-ticker retention 2m");
    const first = await client.getPage(client.pagePath(5));
    expect(times(first)).toEqual([
      "2026-03-01T12:00:00.000Z",
      "2026-03-01T11:59:30.000Z",
      "2026-03-01T11:59:00.000Z",
      "2026-03-01T11:58:30.000Z",
    ]);
    expect(first.nextId).toBeNull();
  });

  it("begins ends the history at a time", async () => {
    client.simulator.setFaults("GET /index-ticker begins 2026-03-01T11:59:00Z");
    const first = await client.getPage(client.pagePath(5));
    expect(times(first)).toEqual([
      "2026-03-01T12:00:00.000Z",
      "2026-03-01T11:59:30.000Z",
      "2026-03-01T11:59:00.000Z",
    ]);
    expect(first.nextId).toBeNull();
  });

  it.each(["first", "last"])("duplicate-row sends the %s row twice", async (row) => {
    client.simulator.setFaults(`GET /index-ticker duplicate-row ${row}`);
    const page = await client.getPage(client.pagePath(5));
    const [one, other] = row === "first" ? ids(page) : ids(page).slice(-2);
    expect(page.content.length).toBe(6);
    expect(one).toBe(other);
  });

  it("does not count a fault that changed nothing, such as a cursor fault on a first page", async () => {
    client.simulator.setFaults(
      "GET /index-ticker dead-cursor 404 times=1\nGET /index-ticker drop nothingOfTheKind",
    );
    const first = await client.getPage(client.pagePath(5));
    expect(client.faultCounts()).toEqual([0, 0]);
    expect((await client.get(client.pagePath(5, first.nextId))).status).toBe(404);
    expect(client.faultCounts()).toEqual([1, 0]);
  });

  it("triggers on the same requests in any order", async () => {
    const paths = Array.from({ length: 40 }, (_, at) => client.pagePath(1 + (at % 20)));
    const outcomes = async (order: string[]) => {
      client.simulator.setFaults("GET * status 503 p=0.3\nGET /index-ticker cut close at=20 p=0.3");
      const answers = await Promise.all(
        order.map(async (path) => {
          const { status, body } = await client.get(path);
          return `${path} ${status} ${body.length}`;
        }),
      );
      return answers.sort();
    };
    const forwards = await outcomes(paths);
    expect(await outcomes(paths.toReversed())).toEqual(forwards);
    expect(new Set(forwards.map((line) => line.split(" ")[1]))).toEqual(new Set(["200", "503"]));
  });
});
