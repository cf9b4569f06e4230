import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { commandsFile, commandsPage, readCommandTable } from "../../scripts/commands-page.ts";
import { commandExamples } from "../../src/cli/support/examples.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { hasTool } from "../support/has-tool.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const commands = await readCommandTable();

describe("the help", () => {
  it("accepts the flags of other settings too", async () => {
    const { stderr, status } = await runInProcess(["gaps", "--base-url", "http://127.0.0.1:1"]);
    expect({ status, stderr }).toMatchObject({
      status: 4,
      stderr: expect.stringContaining("there is no warehouse"),
    });
  });

  it("fits on one screen", async () => {
    for (const name of ["", ...commands.map((command) => command.name)]) {
      const { stdout } = await runInProcess([...(name === "" ? [] : [name]), "--help"]);
      expect([name, stdout.split("\n").length < 45]).toEqual([name, true]);
    }
  });

  it("has examples with options that exist", () => {
    for (const { name, options } of commands) {
      const examples = commandExamples[name] ?? [];
      expect([name, examples.length > 0]).toEqual([name, true]);
      const known = options.map(({ long }) => long);
      for (const example of examples) {
        expect(example.startsWith(`mds-sync ${name}`)).toBe(true);
        const used = example.replace(/ \|.*/, "").match(/(?<= )--[a-z-]+/g) ?? [];
        expect([example, used.filter((flag) => !known.includes(flag))]).toEqual([example, []]);
      }
    }
  });
});

describe("the page of the commands", () => {
  it("equals docs/commands.md", async () => {
    expect(readFileSync(commandsFile, "utf8"), "run `npm run docs`").toBe(await commandsPage());
  });
});

describe("completion", () => {
  /** What bash offers for the last word. */
  function completeInBash(script: string, ...words: string[]): string[] {
    const folder = temporaryFolder();
    const file = join(folder, "completion.bash");
    writeFileSync(file, script);
    // A program of this name stands for the installed one: it lists three series.
    writeFileSync(join(folder, "mds-sync"), "#!/bin/sh\necho BTC; echo BTC/USD; echo Kraken:BTC/USD\n", {
      mode: 0o755,
    });
    const shell = `PATH="$1:$PATH"; . "$2"; shift 2; COMP_WORDS=(mds-sync "$@"); COMP_CWORD=$#; _mds_sync; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = spawnSync("bash", ["-uc", shell, "bash", folder, file, ...words], {
      encoding: "utf8",
      // Bash takes a socket as its input for a remote login, and reads the machine's settings first.
      stdio: ["ignore", "pipe", "pipe"],
    });
    expect(stderr).toBe("");
    return stdout.split("\n").filter((word) => word !== "");
  }

  it("offers commands, options, values and series in bash", async () => {
    const { stdout: script } = await runInProcess(["completion", "bash"]);
    expect(completeInBash(script, "ba")).toEqual(["backfill", "bars", "backup"]);
    expect(completeInBash(script, "bars", "--e")).toEqual(["--every"]);
    expect(completeInBash(script, "bars", "B")).toEqual(["BTC", "BTC/USD"]);
    expect(completeInBash(script, "bars", "BTC", "--format", "p")).toEqual(["parquet"]);
    expect(completeInBash(script, "bars", "BTC", "--every", "1")).toEqual([]);
    expect(completeInBash(script, "gaps", "--series", "BTC/")).toEqual(["BTC/USD"]);
    expect(completeInBash(script, "bars", "Kr")).toEqual(["Kraken:BTC/USD"]);
    expect(completeInBash(script, "bars", "BTC", "Kraken", ":")).toEqual(["BTC/USD"]);
    expect(completeInBash(script, "gaps", "--series", "Kraken", ":", "BT")).toEqual(["BTC/USD"]);
    expect(completeInBash(script, "completion", "")).toEqual(["bash", "zsh", "fish"]);
  });

  it.each(["bash", "zsh", "fish"])("names every command and option in %s", async (shell) => {
    const { stdout, stderr, status } = await runInProcess(["completion", shell]);
    expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
    for (const { name, options } of commands) {
      expect(stdout).toMatch(new RegExp(`\\b${name}\\b`));
      for (const { long } of options)
        expect(stdout).toContain(shell === "fish" ? `-l ${long.slice(2)} ` : long);
    }
  });

  for (const [shell, check] of [
    ["zsh", "-n"],
    ["fish", "--no-execute"],
  ] as const)
    it.runIf(hasTool(shell, `the completion script of ${shell}`))(
      `has a script that ${shell} can parse`,
      async () => {
        const { stdout: script } = await runInProcess(["completion", shell]);
        const file = join(temporaryFolder(), `completion.${shell}`);
        writeFileSync(file, script);
        const { status, stderr } = spawnSync(shell, [check, file], { encoding: "utf8" });
        expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      },
    );
});
