"""What the ledger proves about series, how much they move, and what they are worth: python report.py data/mds.sqlite BTC ETH"""

import sys

import mds
import numpy as np


def report(warehouse, name):
    try:
        bars = warehouse.bars(name, "10m", "now-1d", "now-1h", require_complete=True)
        volatility = np.log(bars["close"]).diff().std()
        print(f"{name}: {len(bars)} bars, volatility {volatility:.6f}")
    except mds.Incomplete as error:
        print(error)
    ticks = warehouse.ticks(name, columns=["price"], exact=True)
    highest = ticks["price_exact"][ticks["price"].idxmax()]
    print(f"{name}: {len(ticks)} ticks, the highest {highest}")
    now = warehouse.asof("now", [name]).iloc[0]
    print(f"{name}: last price {now.price} at {now.time}")


path, *names = sys.argv[1:] or ["data/mds.sqlite", "BTC"]
with mds.open(path) as warehouse:
    for name in names:
        report(warehouse, name)
    print(f"{warehouse.sql('SELECT count(*) AS n FROM index_ticks').n[0]} ticks in all")
