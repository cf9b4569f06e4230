import { describe, expect, it } from "vitest";
import { runPython } from "../support/clients/run-python.ts";
import { hasModules } from "../support/has-tool.ts";

const hasPandas = hasModules("pandas", "names in Python");

describe.runIf(hasPandas)("a name in Python", () => {
  it("that two series share tells its choices, and takes them", () => {
    const stdout = runPython(`
from mds.names import Series, find_series
known = [Series(("GWA", "l1", "LUNA")), Series(("GWA", "l2", "LUNA")), Series(("LX", "l3", "LUNA"))]
assets = lambda: {"l1": ("Terra Classic", "inactive"), "l2": ("Terra", "active")}
days = lambda series: {"l1": ("2019-05-07", "2022-05-13"), "l2": ("2022-05-28", "2026-02-28")}.get(series.index_id)
for name in ("LUNA@2022", "GWA:LUNA@2019", "terra", "LX:LUNA", "LUNA", "LUNA@2020"):
    try:
        print(find_series(name, known, None, assets, days).index_id)
    except Exception as error:
        print(error)
`);
    expect(stdout.trimEnd().split("\n")).toEqual([
      "l2",
      "l1",
      "l2",
      "l3",
      "LUNA names 3 series: write LUNA@2019 (Terra Classic, inactive, 2019-05-07 to 2022-05-13) or " +
        "LUNA@2022 (Terra, active, 2022-05-28 to 2026-02-28) or LX:LUNA (no rows)",
      "the warehouse has no series LUNA@2020: did you mean LUNA?",
    ]);
  });
});
