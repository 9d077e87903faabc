"""What `ringcast pipeline` tells of a lake's tables and does to them: list, describe, query, follow, compact."""

from __future__ import annotations

import argparse
import datetime as dt
from typing import TYPE_CHECKING, Any

import msgspec

from ringcast.cli.parts.output import Output
from ringcast.cli.program import Misuse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ringcast.spark.lake import Lake


def compact(args: argparse.Namespace, output: Output, spark: SparkSession, lake: Lake) -> int:
    from ringcast.spark.catalog import find, names

    rows: list[dict[str, Any]] = []
    for name in args.tables or names():
        table = find(name)
        if lake.exists(table):
            output.progress(f"compacting {name}")
            done = lake.compact(table, grace_s=args.grace * 3600)
            rows.append({"table": name, "rewritten": done.removed, "into": done.files})
    if output.json:
        output.document(rows)
    else:
        output.table(["table", "files", "into"], [[r["table"], str(r["rewritten"]), str(r["into"])] for r in rows])
    return 0


def lineage(args: argparse.Namespace, output: Output, spark: SparkSession, lake: Lake) -> int:
    from ringcast.spark.catalog import find
    from ringcast.spark.lineage import ancestry, lineage

    find(args.table)
    made = lineage(lake, args.table).collect()
    if output.json:
        rows = [{**row.asDict(), "event_time": row.event_time.isoformat()} for row in made]
        for row in rows:
            row |= {name: msgspec.json.decode(row[name]) for name in ("inputs", "outputs", "counts")}
        output.document({"table": args.table, "made_from": ancestry(lake, args.table)[1:], "runs": rows})
        return 0
    if not made:
        output.note(f"no run has written {args.table} yet")
        return 0
    output.line(" <- ".join(ancestry(lake, args.table)))
    cells = [
        [row.run_id, f"{row.event_time:%Y-%m-%d %H:%M:%S}", row.state, str(row.rows), row.code_version, row.inputs]
        for row in made
    ]
    output.table(["run", "begun", "state", "rows", "code", "from"], cells)
    return 0


def tables(args: argparse.Namespace, output: Output, spark: SparkSession, lake: Lake) -> int:
    from ringcast.spark.analyst.view import View
    from ringcast.spark.catalog import tables

    if args.describe:
        return _describe(output, View(lake).describe(args.describe))
    rows: list[dict[str, Any]] = []
    for name, table in tables().items():
        state = lake.state(table)
        size = sum(file.size for file in state.files.values())
        rows.append(
            {
                "table": name, "rows": state.rows, "files": len(state.files), "bytes": size,
                "partitions": len({file.partition for file in state.files.values()}),
                "commits": state.version + 1, "about": table.about,
            }
        )  # fmt: skip
    if output.json:
        output.document(rows)
    else:
        heads = ["table", "rows", "files", "bytes", "partitions", "commits", "what"]
        output.table(heads, [[str(cell) for cell in row.values()] for row in rows])
    return 0


def _describe(output: Output, found: dict[str, Any]) -> int:
    if output.json:
        output.document(found)
        return 0
    output.line(f"{found['table']}: {found['about']}")
    output.line(f"{found['rows']} rows in {found['files']} files, version {found['version']}, at {found['location']}")
    output.line(" <- ".join([found["table"], *found["made_from"]]))
    output.table(["column", "type"], [[name, kind] for name, kind in found["columns"].items()])
    if found["runs"]:
        cells = [[r["run"], r["begun"], r["state"], str(r["rows"]), r["code"], r["from"]] for r in found["runs"]]
        output.table(["run", "begun", "state", "rows", "code", "from"], cells, "lineage: the last runs that wrote it")
    if found["quality"]:
        cells = [[q["what"], q["action"], str(q["rows"]), str(q["last_run"])] for q in found["quality"]]
        output.table(["what", "action", "rows, all runs", "the last run"], cells, "quality")
    if found["quarantined"]:
        output.line(f"{found['quarantined']} rows are in quarantine: select * from quarantine")
    return 0


def sql(args: argparse.Namespace, output: Output, spark: SparkSession, lake: Lake) -> int:
    from ringcast.spark.analyst.lake_session import BadQuery
    from ringcast.spark.analyst.view import View

    try:
        found = View(lake).sql(args.query)
    except BadQuery as exc:
        raise Misuse(str(exc)) from exc
    rows = found.limit(args.rows).collect()
    if output.json:
        output.document([{name: _plain(cell) for name, cell in row.asDict(recursive=True).items()} for row in rows])
    else:
        output.table(found.columns, [[str(cell) for cell in row] for row in rows])
    return 0


def _plain(cell: Any) -> Any:
    if isinstance(cell, dt.date | dt.datetime):
        return cell.isoformat()
    return cell.hex() if isinstance(cell, bytes | bytearray) else cell
