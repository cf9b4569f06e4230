import { expect, it } from "vitest";
import { usePostgres } from "../support/postgres.ts";
import { type CutPoint, startCuttingProxy } from "../support/share/cutting-proxy.ts";
import { addHours, shareInto } from "../support/share/share-harness.ts";
import { startShare } from "../support/share/start-share.ts";
import { waitUntil } from "../support/wait-until.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";

const server = usePostgres();
const MANY_HOURS = 60;

it.each([
  ["before COMMIT", { at: "before COMMIT", count: 1 }],
  ["in the middle of a COPY", { at: "in COPY", count: 1 }],
] as [string, CutPoint][])(
  "I10: a program stopped %s and woken after the take-over commits nothing",
  async (_, point) => {
    const database = await server.createDatabase();
    // The stopped one would commit more than the one that takes over.
    const [stopped, next] = [openTestWarehouse(), openTestWarehouse()];
    addHours(stopped, 0, MANY_HOURS);
    addHours(next, 0, 2);
    let stop = () => {};
    const proxy = await startCuttingProxy(server.port, point, () => stop(), { holds: true });
    const { child, result } = startShare(stopped, proxy.port, database);
    stop = () => void child.kill("SIGSTOP");
    await waitUntil(() => proxy.hasCut(), 20);
    // Its lease ends by the database's clock.
    await server.query(database, "UPDATE mds.lease SET until = clock_timestamp() - interval '1 second'");
    expect(await shareInto(server, database, next)).toMatchObject({ rows: 240 });
    child.kill("SIGCONT");
    proxy.release();
    const { status, stderr } = await result;
    expect({ status, stderr }).toMatchObject({ status: 75 });
    expect(await server.query(database, "SELECT count(*)::integer AS rows FROM mds.index_tick_rows")).toEqual(
      [{ rows: 240 }],
    );
    expect(await shareInto(server, database, next, { verify: true })).toMatchObject({ rows: 0, mended: 0 });
  },
);
