import { describe, expect, it } from "vitest";
import { exitCode } from "../../src/model/failure.ts";
import {
  findUrlProblem,
  isLoopback,
  listServerUrls,
  normaliseAddress,
  parseServiceUrl,
} from "../../src/model/service-url.ts";

describe("a service URL", () => {
  it.each([
    ...["https://api.example.com/v3", "wss://api.example.com/v3", "https://localhost:8443"],
    ...["http://localhost:8080/v3", "ws://localhost:8080", "http://127.0.0.1:9", "http://127.200.30.4"],
    "ws://[::1]:9",
  ])("may be %s", (text) => {
    expect(findUrlProblem(text)).toBeUndefined();
    expect(parseServiceUrl("baseUrl", text).href).toBe(new URL(text).href);
  });

  it.each([
    ["", "not a valid URL"],
    ["example.com", "not a valid URL"],
    ["ftp://example.com", "unsupported scheme ftp:"],
    ["http://example.com", "plain text"],
    ["ws://example.com", "plain text"],
    ["http://127.0.0.1.example.com", "plain text"],
    ["http://localhost.example.com", "plain text"],
    ["http://128.0.0.1", "plain text"],
    ["https://user@example.com", "user name or password"],
    ["http://user:secret@localhost", "user name or password"],
  ])("must not be %j: %s", (text, problem) => {
    expect(findUrlProblem(text)).toContain(problem);
  });

  it("is refused with the name of its setting, as a usage error without its credentials", () => {
    const parse = () => parseServiceUrl("wsUrl", "https://user:secret@example.com");
    expect(parse).toThrow("wsUrl contains a user name or password");
    expect(parse).not.toThrow("secret@");
    expect(parse).toThrow(expect.objectContaining({ code: "bad_address", exit: exitCode.usage }));
  });

  it("is a loopback address only as a whole host name", () => {
    const loopback = (host: string) => isLoopback({ hostname: host } as URL);
    expect(["localhost", "127.0.0.1", "127.255.255.255", "[::1]"].filter(loopback)).toHaveLength(4);
    const others = "xlocalhost localhostx 127.0.0 127.0.0.1.2 127.0.0.1x 127.0.0. 127.0.0.1234".split(" ");
    expect(others.filter(loopback)).toEqual([]);
  });
});

it.each([
  ["https://API.example.com:443/v3//", "https://api.example.com/v3"],
  ["https://api.example.com//x/", "https://api.example.com//x"],
  ["http://127.0.0.1:9/", "http://127.0.0.1:9"],
])("the address %s is compared as %s", (text, normalised) => {
  expect(normaliseAddress(new URL(text))).toBe(normalised);
});

describe("the address of a shared warehouse", () => {
  it("gives an address for each server", () => {
    const read = (url: string) => listServerUrls(url)?.map(({ host }) => host);
    expect(read("postgres://mds@db/market")).toEqual(["db"]);
    const three = read("postgresql://mds@one,two:5433,[::1]:5434/market?sslmode=require");
    expect(three).toEqual(["one", "two:5433", "[::1]:5434"]);
    expect(read("postgres://mds@one,two/market?target_session_attrs=read-write")).toHaveLength(2);
    expect(read("postgres://mds@db/m?target_session_attrs=primary&sslrootcert=/ca.pem")).toEqual(["db"]);
  });

  it.each([
    ...["http://mds@db/market", "postgres://db/market", "postgres://mds@db", "postgres://mds@db/market#x"],
    ...["postgres://mds@db/mar\nket", "postgres://mds@/market", "postgres://@db/market"],
    ...[
      "postgres://mds@db/?sslmode=require",
      "postgres://mds@one,/market",
      "postgres://mds@one:x,two/market",
    ],
    "postgres://mds:secret@one,two/market",
    "postgres://mds@one,two/market?target_session_attrs=any",
    "postgres://mds@one/market?sslmode=",
    "postgres://mds@one/market?password=secret",
  ])("refuses %j", (url) => {
    expect(listServerUrls(url)).toBeUndefined();
  });
});
