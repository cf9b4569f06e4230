import { expect, it } from "vitest";
import { listServerUrls } from "../../src/model/postgres-url.ts";

it("gives an address for each server", () => {
  const read = (url: string) => listServerUrls(url)?.map(({ host }) => host);
  expect(read("postgres://mds@db/market")).toEqual(["db"]);
  expect(read("postgresql://mds@one,two:5433,[::1]:5434/market?sslmode=require")).toEqual([
    "one",
    "two:5433",
    "[::1]:5434",
  ]);
  expect(read("postgres://mds@one,two/market?target_session_attrs=read-write")).toHaveLength(2);
  expect(read("postgres://mds@db/m?target_session_attrs=primary&sslrootcert=/ca.pem")).toEqual(["db"]);
});

it.each([
  "http://mds@db/market",
  "postgres://db/market",
  "postgres://mds@db",
  "postgres://mds@db/",
  "postgres://mds@db/market#x",
  "postgres://mds@db/mar\nket",
  "postgres://mds@/market",
  "postgres://mds@:5432/market",
  "postgres://@db/market",
  "postgres://:@db/market",
  "postgres://mds@db/?sslmode=require",
  "postgres://mds@db?sslmode=require",
  "xpostgres://mds@db/market",
  "postgres://mds@one,/market",
  "postgres://mds@one:x,two/market",
  "postgres://mds:secret@one,two/market",
  "postgres://one,mds:secret@two/market",
  "postgres://mds@one,two/market?target_session_attrs=any",
  "postgres://mds@one,two/market?target_session_attrs=xprimary",
  "postgres://mds@one,two/market?target_session_attrs=primaryx",
  "postgres://mds@one/market?sslmode=",
  "postgres://mds@one/market?password=secret",
])("refuses %j", (url) => {
  expect(listServerUrls(url)).toBeUndefined();
});
