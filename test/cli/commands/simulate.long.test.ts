import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { clientSettings, readSettings, startProgram } from "../../support/program-process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

/** Runs a command beside the simulator. */
const simulate = (...command: string[]) =>
  startProgram(["simulate", "--", ...command], { cwd: temporaryFolder() });

describe("mds-sync simulate", () => {
  it("prints a client's settings, serves until SIGTERM, and exits 0", async () => {
    const started = startProgram(["simulate"], { cwd: temporaryFolder() });
    const { child, output } = started;
    const settings = await readSettings(started, clientSettings.length);
    expect(Object.keys(settings)).toEqual(clientSettings);

    const answer = await fetch(`${settings.MDS_BASE_URL}/v3/oauth/token`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        grant_type: "client_credentials",
        client_id: settings.MDS_CLIENT_ID,
        client_secret: settings.MDS_CLIENT_SECRET,
        audience: settings.MDS_BASE_URL,
      }),
    });
    const { access_token } = (await answer.json()) as { access_token: string };
    const assets = await fetch(`${settings.MDS_BASE_URL}/v3/asset?symbol=BTC`, {
      headers: { authorization: `Bearer ${access_token}` },
    });
    expect(await assets.json()).toMatchObject({ content: [{ name: "Bitcoin" }] });

    child.kill("SIGTERM");
    expect(await once(child, "close")).toEqual([0, null]);
    expect(output.stderr).toBe("the simulator is listening; stop it with Ctrl-C\n");
  });

  it("runs a command with the settings in its environment, and ends with it and its exit code", async () => {
    const shell = `echo "$MDS_BASE_URL $MDS_WS_URL $MDS_CLIENT_ID"; test -n "$MDS_CLIENT_SECRET" || exit 1
      exec "${process.execPath}" -e 'fetch(process.env.MDS_BASE_URL + "/v3/asset").then(({ status }) => {
        console.log(status, ...process.argv.slice(1)); process.exitCode = 7 })' -- "$@"`;
    const command = ["sh", "-c", shell, "sh", "--port", "two words"];
    const { stdout, stderr, status } = await simulate(...command).result;
    expect({ stderr, status }).toEqual({ stderr: "", status: 7 });
    expect(stdout).toMatch(
      /^http:\/\/127\.0\.0\.1:(\d+) ws:\/\/127\.0\.0\.1:\1\/v3\/stream \S+\n401 --port two words\n$/,
    );
  });

  it("passes signals on to the command, and leaves the answer to it", async () => {
    const shell = `trap 'echo asked to stop; exit 5' TERM; echo ready; sleep 300 & wait`;
    const { child, output, result } = simulate("sh", "-c", shell);
    await once(child.stdout, "data");
    child.kill("SIGTERM");
    expect(await result).toEqual({ stdout: "ready\nasked to stop\n", stderr: "", status: 5 });
    expect(output.stdout).not.toContain("MDS_");
  });

  it("leaves no process of the command, whether it ends by a signal or by itself", async () => {
    const cases = [
      ["SIGTERM", "sleep 300 & echo ready; wait", 143],
      [undefined, 'mkfifo f; (trap "" TERM; echo ready >f; sleep 300) & read line <f; echo $line; exit 7', 7],
    ] as const;
    const endings = cases.map(async ([signal, shell]) => {
      const { child, result } = simulate("sh", "-c", shell);
      await once(child.stdout, "data");
      if (signal) child.kill(signal);
      // Whoever is left keeps stdout open, so that the result never comes.
      return result;
    });
    expect(await Promise.all(endings)).toEqual(
      cases.map(([, , status]) => ({ stdout: "ready\n", stderr: "", status })),
    );
  });

  it.each([
    [["sh", "-c", "kill -9 $$"], 137, ""],
    [["no-such-program"], 127, "mds-sync: cannot run no-such-program (ENOENT): check its name and PATH\n"],
  ])("answers a command that ends without an exit code, as a shell does: %j", async (command, code, line) => {
    expect(await simulate(...command).result).toEqual({ stdout: "", stderr: line, status: code });
  });
});
