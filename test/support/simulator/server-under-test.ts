import { afterAll, it } from "vitest";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../simulator/simulator.ts";
import { ManualClock } from "../manual-clock.ts";

/*
 * The tests of the API's REST interface and websocket check the specification, with the simulated market as their source.
 * `test/serve/conformance.test.ts` runs the same files against `mds-sync serve` on a warehouse that was filled from the simulator.
 */

let server: "simulator" | "serve" = "simulator";

/** Call it before the test files are imported. */
export function testServe(): void {
  server = "serve";
  afterAll(() => {
    server = "simulator";
  });
}

export function isServeTested(): boolean {
  return server === "serve";
}

const START = "2026-03-01T12:00:10Z";

/** Starts the server on a manual clock. `isLive`: `serve` gets new ticks, as the simulator does. */
export async function startServer(
  options: SimulatorOptions,
  { start = START, isLive = false }: { start?: string | undefined; isLive?: boolean } = {},
): Promise<{ readonly simulator: Simulator; readonly clock: ManualClock }> {
  if (isServeTested()) {
    // Loaded only then: the tests of the simulator need nothing of the product.
    const { startConformingServer } = await import("../serve/conforming-server.ts");
    return startConformingServer(options, isLive);
  }
  const clock = new ManualClock(start);
  return { simulator: await startSimulator({ clock, ...options }), clock };
}

/** A test of what only the simulator promises: its own choices, and the market that moves with the clock. */
export const itOfSimulator: typeof it = new Proxy(it, {
  apply: (test, self, args) => (isServeTested() ? undefined : Reflect.apply(test, self, args)),
});

/** Plain notation without trailing zeros: what the warehouse keeps of a decimal. */
const plain = (text: string) => (/^-?\d+\.\d+$/.test(text) ? text.replace(/\.?0+$/, "") : text);

/** Records as both servers send them: `serve` gives ticks ids of its own, and drops redundant zeros. */
export function comparable<T extends object>(records: readonly T[]): readonly object[] {
  if (!isServeTested()) return records;
  return records.map((record) =>
    Object.fromEntries(
      Object.entries(record)
        .filter(([name]) => name !== "id")
        .map(([name, value]) => [name, typeof value === "string" ? plain(value) : value])
        .sort(),
    ),
  );
}
