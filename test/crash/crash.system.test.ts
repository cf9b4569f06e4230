import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { hasTool } from "../support/has-tool.ts";
import { seed } from "../support/seed.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { crashAt, findCrashPoints, findProblems, killedProcess, tasks } from "./sweep.ts";
import { openTestWriter, seedLiveRows } from "./workload.ts";

const SAMPLED_POINTS = 3;
const RANDOM_KILLS = 3;

describe("F1: a process killed at a write, sync or truncate leaves an intact file, and the next one completes it", () => {
  it.each(tasks)("during %s, at random crash points (npm run sweep: at every one)", async (task) => {
    if (!hasTool("strace", `a crash during ${task}`)) return;
    const random = seededRandom(seed + tasks.indexOf(task));
    const points = await findCrashPoints(task);
    expect(points.length).toBeGreaterThan(20);
    let killed = 0;
    for (let i = 0; i < SAMPLED_POINTS; i++) {
      const point = points[Math.floor(random() * points.length)];
      if (!point) continue;
      const result = await crashAt(point);
      if (result.isKilled) killed++;
      expect({ point, problems: result.problems }).toEqual({ point, problems: [] });
    }
    expect(killed).toBeGreaterThan(SAMPLED_POINTS / 2);
  });
});

describe("F2: a process killed repeatedly at random times", () => {
  it("leaves a file that the next one completes, every time", async () => {
    const path = join(temporaryFolder(), "mds.sqlite");
    const random = seededRandom(seed);
    const warehouse = openTestWriter(path);
    seedLiveRows(warehouse);
    warehouse.close();
    const program = await killedProcess();
    for (let kill = 0; kill < RANDOM_KILLS; kill++) {
      const child = spawn(process.execPath, [program, "endless", path], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      await once(child.stdout, "data");
      await new Promise((later) => setTimeout(later, random() * 40));
      child.kill("SIGKILL");
      await once(child, "exit");
      expect({ kill, problems: findProblems(path, "") }).toEqual({ kill, problems: [] });
    }
  });
});
