import { describe, expect, it } from "vitest";
import { loadSettings, requireServiceSettings } from "../../src/config/load-settings.ts";
import { Failure } from "../../src/model/failure.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const complete = {
  ...{ MDS_BASE_URL: "https://rest.example", MDS_WS_URL: "wss://live.example" },
  ...{ MDS_CLIENT_ID: "me", MDS_CLIENT_SECRET: "canary-7f1" },
};

function require(env: Record<string, string>) {
  return requireServiceSettings(loadSettings({ env, directory: temporaryFolder() }));
}

function errorOf(env: Record<string, string>): string {
  try {
    require(env);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    expect(error.exit).toBe(2);
    return error.summary;
  }
  throw new Error("the settings were accepted");
}

describe("the service's settings", () => {
  it("are complete; the token address defaults to the REST address", async () => {
    const { readSecret, ...rest } = require(complete);
    const baseUrl = "https://rest.example";
    const urls = { baseUrl, authUrl: baseUrl, wsUrl: "wss://live.example" };
    const defaults = { concurrency: 8, maxRequestsPerSecond: 0, refreshSeconds: 30 };
    expect(rest).toEqual({ ...urls, clientId: "me", ...defaults });
    expect(await readSecret()).toBe("canary-7f1");
    expect(require({ ...complete, MDS_AUTH_URL: "https://id.example" }).authUrl).toBe("https://id.example");
  });

  it("report in one line everything that is not set, and how to set it", () => {
    expect(errorOf({})).toBe(
      "service.baseUrl, service.wsUrl, service.clientId and the client secret are not set: " +
        "set MDS_BASE_URL, MDS_WS_URL, MDS_CLIENT_ID and MDS_CLIENT_SECRET_FILE, or name a settings file with --config",
    );
    expect(errorOf({ ...complete, MDS_WS_URL: "" })).toBe(
      "service.wsUrl is not set: set MDS_WS_URL, or name a settings file with --config",
    );
  });
});
