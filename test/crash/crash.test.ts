import { spawn } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/runtime/backoff.ts";
import { seed } from "../support/seed.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { dieAt, hasStrace, judge, placesOf, tasks } from "./sweep.ts";
import { open, seedLiveRows } from "./workload.ts";

const SAMPLED_PLACES = 8;
const RANDOM_KILLS = 8;

describe("F1: killed at a write, sync or truncate, the file is sound, rows and ledger agree, and going on ends at the truth", () => {
  it.each(tasks)(
    "in the middle of a %s, at places drawn by the seed (npm run sweep: at every place)",
    (task) => {
      if (!hasStrace()) {
        process.stdout.write(`not shown here: a crash inside a ${task} (strace is not installed)\n`);
        return;
      }
      const random = seededRandom(seed + tasks.indexOf(task));
      const places = placesOf(task);
      expect(places.length).toBeGreaterThan(20);
      let killed = 0;
      for (let i = 0; i < SAMPLED_PLACES; i++) {
        const place = places[Math.floor(random() * places.length)];
        if (!place) continue;
        const result = dieAt(place);
        if (result.killed) killed++;
        expect({ place, problems: result.problems }).toEqual({ place, problems: [] });
      }
      expect(killed).toBeGreaterThan(SAMPLED_PLACES / 2);
    },
    60_000,
  );
});

describe("F2: killed at random, again and again, on one file", () => {
  it("ends at the truth every time", async () => {
    const path = join(temporaryFolder(), "mds.sqlite");
    const random = seededRandom(seed);
    const warehouse = open(path);
    seedLiveRows(warehouse);
    warehouse.close();
    for (let kill = 0; kill < RANDOM_KILLS; kill++) {
      const victim = resolve(import.meta.dirname, "killed-process.ts");
      const child = spawn(process.execPath, [victim, "for ever", path], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      await once(child.stdout, "data");
      await new Promise((later) => setTimeout(later, random() * 40));
      child.kill("SIGKILL");
      await once(child, "exit");
      expect({ kill, problems: judge(path, "") }).toEqual({ kill, problems: [] });
    }
  });
});
