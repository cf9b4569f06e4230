"""Runs blocks of Python on a warehouse and prints what each one's last expression gives, as JSON.

Standard input: {"source": …, "blocks": {title: code}, "without": a module that shall not be found}. A table becomes {"columns", "rows"} in the types of the warehouse, an error
{"error"}."""

import ast
import datetime
import decimal
import json
import sys

import numpy as np
import pandas as pd

asked = json.load(sys.stdin)
if asked.get("without"):
    sys.modules[asked["without"]] = None

import mds  # noqa: E402


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, pd.Timestamp):
        return value.tz_convert("UTC").strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    return value.item() if isinstance(value, np.generic) else value


def table(result):
    if isinstance(result, pd.Series):
        result = result.to_frame(result.name if result.name is not None else "value")
    if not isinstance(result, pd.DataFrame):
        return {"value": plain(result)}
    if result.index.name is not None:
        result = result.reset_index()
    if isinstance(result.columns, pd.MultiIndex):
        result.columns = ["/".join(str(part) for part in column if part != "") for column in result.columns]
    columns = [result[name].tolist() for name in result.columns]
    return {"columns": list(result.columns), "rows": [[plain(value) for value in row] for row in zip(*columns)]}


def run(code, scope):
    tree = ast.parse(code)
    last = tree.body.pop()
    exec(compile(tree, "block", "exec"), scope)
    return eval(compile(ast.Expression(last.value), "block", "eval"), scope)


answers = {}
with mds.open(asked["source"]) as warehouse:
    for title, code in asked["blocks"].items():
        try:
            answers[title] = table(run(code, {"mds": mds, "np": np, "pd": pd, "w": warehouse}))
        except Exception as error:
            answers[title] = {"error": f"{type(error).__name__}: {error}"}
json.dump(answers, sys.stdout, allow_nan=False)
