import { describe, expect, it } from "vitest";
import { ListHealth } from "../../../src/service/client/list-health.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const request = (indexType: string) => ({ endpoint: "/index-ticker", query: { indexType, indexId: "x" } });

describe("a kind of list that no request gets", () => {
  it("H8: is asked for once a minute, while the others are asked as ever", async () => {
    const clock = new ManualClock();
    const health = new ListHealth(clock);
    const isSent = (indexType: string) => {
      try {
        health.assertAnswered(request(indexType));
        return true;
      } catch (error) {
        expect(error).toMatchObject({ code: "no_list", family: "retry" });
        return false;
      }
    };
    let sent = 0;
    for (let minute = 0; minute < 10; minute++) {
      for (let series = 0; series < 1000; series++) {
        if (isSent("MWA")) {
          sent++;
          health.recordNoList(request("MWA"));
        }
        expect(isSent("GWA")).toBe(true);
      }
      await clock.advance(60_000);
    }
    expect(sent).toBe(20 + 9);
    health.recordPage(request("MWA"), 0);
    expect([isSent("MWA"), isSent("MWA")]).toEqual([true, true]);
    expect(health.hasServed(request("MWA"))).toBe(false);
    health.recordPage(request("MWA"), 1);
    expect([health.hasServed(request("MWA")), health.hasServed(request("GWA"))]).toEqual([true, false]);
  });

  it("H8: is known by derivative type: the others are asked as ever", () => {
    const health = new ListHealth(new ManualClock());
    const ticker = (derivativeType: string) => ({
      endpoint: "/derivatives/ticker/{derivativeType}",
      params: { derivativeType },
    });
    for (let response = 0; response < 20; response++) health.recordNoList(ticker("options"));
    expect(() => health.assertAnswered(ticker("options"))).toThrow("no list");
    expect(() => health.assertAnswered(ticker("futures"))).not.toThrow();
  });
});
