import { describe, expect, it } from "vitest";
import { Parking } from "../../../src/service/auth/parking.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const request = (indexType: string) => ({ endpoint: "/index-ticker", query: { indexType, indexId: "x" } });

describe("a kind of list that no request gets", () => {
  it("H8: is asked for once a minute, while the others are asked as ever", async () => {
    const clock = new ManualClock();
    const health = new Parking(clock, () => 0);
    const isSent = (indexType: string) => {
      try {
        health.assertListed(request(indexType));
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
    health.recordList(request("MWA"), 0);
    expect([isSent("MWA"), isSent("MWA")]).toEqual([true, true]);
    expect(health.hasListed(request("MWA"))).toBe(false);
    health.recordList(request("MWA"), 1);
    expect([health.hasListed(request("MWA")), health.hasListed(request("GWA"))]).toEqual([true, false]);
  });

  it("H8: is known by derivative type", () => {
    const health = new Parking(new ManualClock(), () => 0);
    const ticker = (derivativeType: string) => ({
      endpoint: "/derivatives/ticker/{derivativeType}",
      params: { derivativeType },
    });
    for (let response = 0; response < 20; response++) health.recordNoList(ticker("options"));
    expect(() => health.assertListed(ticker("options"))).toThrow("no list");
    expect(() => health.assertListed(ticker("futures"))).not.toThrow();
  });
});
