"""What the ledger proves about a day, how much the series moved, and what it is worth: python report.py data/mds.sqlite BTC [2026-02-28]"""

import sys

import mds
import numpy as np
import pandas as pd

path, name, *rest = sys.argv[1:]
yesterday = pd.Timestamp.now("UTC") - pd.Timedelta("1d")
day = rest[0] if rest else f"{yesterday:%Y-%m-%d}"
series, start = f"GWA:{name}", pd.Timestamp(day, tz="UTC")
window = [series, start, start + pd.Timedelta("1d")]

with mds.open(path) as warehouse:
    # A row for every bar, so that no return spans a gap.
    bars = warehouse.bars(series, "15m", *window[1:], grid=True)
    whole = bars["is_complete"].fillna(False).astype(bool)
    ticks = warehouse.ticks(*window)
    now = warehouse.asof("now", [series]).iloc[0]
    report = {
        "name": name,
        "day": day,
        "missing_ranges": len(warehouse.missing(*window)),
        "bars": whole.sum(),
        "volatility": round(np.log(bars["close"].where(whole)).diff().std(), 6),
        "ticks": len(ticks),
        "highest": ticks["price"].max(),
        "last_price": now.price,
        "last_time": f"{now.time:%Y-%m-%dT%H:%M:%S.%fZ}",
    }
    print(pd.DataFrame([report]).to_csv(index=False), end="")
