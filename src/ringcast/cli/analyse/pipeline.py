"""`ringcast pipeline`: run the data pipelines, and see what their tables hold and where it came from."""

from __future__ import annotations

import argparse
import importlib
import os
import time
from typing import TYPE_CHECKING, Any

import msgspec

from ringcast.cli.parts import units
from ringcast.cli.parts.instants import instant
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.program import Misuse
from ringcast.errors import RingcastError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ringcast.spark.lake import Lake

HELP = "Run the data pipelines on Spark; see what their tables hold and where it came from."

_EPILOG = """\
pipelines: ingest (messages into the lake), refine (decoded, once each, times in one base), fuse (survivors), fire, qos
(quality of service), fit (lines through measurements), train (a model that chooses a transport)

examples:
  ringcast pipeline run ingest --input recording/         what 'ringcast record' wrote
  ringcast pipeline run refine --from 2026-05-01T10:00 --to 2026-05-01T12:00
  ringcast pipeline run qos --master spark://host:7077
  ringcast pipeline run train --input out/adamant/results.parquet --metric relate2 --model best.json
  ringcast pipeline simulate --seconds 10 --loss 0.03     a search and rescue with known truth
  ringcast pipeline report --out report.html
  ringcast pipeline lineage gold.detections
  ringcast pipeline tables --json
"""
_LAKE = "RINGCAST_LAKE"


class NoSpark(RingcastError):
    """The pipelines need pyspark, which is not installed."""

    def __init__(self, missing: str) -> None:
        self.missing = missing
        super().__init__(f"the pipelines need {missing}; install it with: pip install 'ringcast[spark]'")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    run = _action(actions, "run", "run a pipeline over all there is, or over whole hours of it")
    run.add_argument("name", metavar="NAME")
    run.add_argument(
        "--from", dest="begin", metavar="T", type=instant, help="from this time on, UTC (2026-05-01T10:00)"
    )
    run.add_argument("--to", dest="end", metavar="T", type=instant, help="up to this time; hours are done whole")
    run.add_argument("--input", metavar="DIR", help="a recording (ingest), or results as Parquet (fit, train)")
    run.add_argument("--tag", metavar="PATTERN", help="what the rings of these tags hold now (ingest)")
    run.add_argument("--socket", metavar="PATH", help="the daemon to read and publish tags through (ingest, fuse)")
    run.add_argument("--publish", metavar="TAG", help="send what was found on this tag, too (fuse)")
    run.add_argument("--family", action="append", metavar="NAME", help="only this family (refine; repeatable)")
    run.add_argument("--window", type=units.positive, default=1.0, metavar="S", help="per row (qos; default: 1 s)")
    run.add_argument("--deadline", type=units.positive, default=50.0, metavar="MS", help="(qos; default: 50 ms)")
    run.add_argument("--metric", default="relate2", help="what the model is to keep low (train; default: relate2)")
    run.add_argument("--experiment", metavar="NAME", help="only its results (fit, train; default: all there are)")
    run.add_argument("--splits", metavar="N", type=units.count, default=3,
                     help="times that other environments are held out (train; default: 3)")  # fmt: skip
    run.add_argument("--model", metavar="FILE", help="where the model goes (train; default: in the lake)")
    simulate = _action(actions, "simulate", "put a made-up search and rescue with known truth into the lake")
    compare = _action(actions, "compare", "find its survivors in time, with clocks apart, and with loss")
    for one in (simulate, compare):
        one.add_argument("--seconds", type=units.positive, default=4.0, help="of the mission (default: 4)")
        one.add_argument("--seed", type=units.index, default=7, help="(default: 7)")
    simulate.add_argument("--loss", type=units.not_negative, default=0.0, help="share of packets lost, as 0.03")
    simulate.add_argument("--skew", type=float, default=0.0, metavar="MS", help="UAV cameras' clocks are ahead")
    report = _action(actions, "report", "an HTML page with pictures of what the lake holds")
    report.add_argument("--out", metavar="FILE", default="report.html", help="(default: report.html)")
    report.add_argument("--compare", action="store_true", help="with the trials of 'compare' in it")
    compact = _action(actions, "compact", "one file per partition; removes what no commit names")
    compact.add_argument("tables", nargs="*", metavar="TABLE", help="(default: all)")
    compact.add_argument("--grace", type=units.not_negative, default=1.0, metavar="H",
                         help="hours that replaced files are kept for readers (default: 1)")  # fmt: skip
    lineage = _action(actions, "lineage", "which runs wrote a table, from what, by which code")
    lineage.add_argument("table", metavar="TABLE")
    _action(actions, "tables", "list tables: rows, files, versions")


def run(args: argparse.Namespace) -> int:
    output = Output(args.json)
    actions = {
        "run": _run, "simulate": _simulate, "compare": _compare, "report": _report, "compact": _compact,
        "lineage": _lineage, "tables": _tables,
    }  # fmt: skip
    if args.action == "run" and (args.begin is None) != (args.end is None):
        raise Misuse("a span has two ends: give both --from and --to, or neither")
    output.progress("starting Spark")
    spark = _session(args.master)
    from ringcast.spark.lake import Lake

    return actions[args.action](args, output, spark, Lake(spark, args.lake))


def _session(master: str | None) -> SparkSession:
    try:
        spark: SparkSession = importlib.import_module("ringcast.spark.session").open_session(master=master)
    except ImportError as exc:
        raise NoSpark(exc.name or "pyspark") from exc
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _run(args: argparse.Namespace, output: Output, spark: SparkSession, lake: Lake) -> int:
    from ringcast.spark import jobs

    if args.name not in jobs.JOBS:
        raise Misuse(str(jobs.NoSuchPipeline(args.name)))
    options = {
        "families": args.family, "window_s": args.window, "deadline_ns": round(args.deadline * 1e6),
        "metric": args.metric, "experiment": args.experiment, "model": args.model, "publish": args.publish,
        "socket": args.socket, "splits": args.splits,
    }  # fmt: skip
    begin = time.monotonic()
    done = jobs.run(
        args.name, lake, args.begin, args.end, _source(args, spark), options,
        say=lambda text: output.progress(f"{args.name}: {text} ({time.monotonic() - begin:.0f} s)"),
    )  # fmt: skip
    if output.json:
        output.document({"run": done.id, "inputs": done.inputs, "outputs": done.outputs, "counts": done.counts})
        return 0
    output.table(["written", "rows"], [[table, str(rows)] for table, rows in done.outputs.items()])
    if done.counts:
        output.line()
        output.table(["counted", "number"], [[name, str(number)] for name, number in done.counts.items()])
    output.note(f"run {done.id}, {time.monotonic() - begin:.1f} s")
    return 0


def _source(args: argparse.Namespace, spark: SparkSession) -> DataFrame | None:
    if args.name == "ingest" and (args.input or args.tag):
        reader = spark.read.format("ringcast").option("decode", "false")
        if args.input:
            reader = reader.option("path", args.input)
        if args.tag:
            reader = reader.option("tag", args.tag)
        if args.socket:
            reader = reader.option("socket", args.socket)
        return reader.load()
    if args.name in ("fit", "train") and args.input:
        if "://" not in args.input and not os.path.exists(args.input):
            raise Misuse(f"there is no {args.input}; 'ringcast lab run adamant' writes results as Parquet")
        return spark.read.parquet(args.input)
    return None


def _simulate(args: argparse.Namespace, output: Output, spark: SparkSession, lake: Lake) -> int:
    from ringcast.rescue import Mission, Settings
    from ringcast.rescue.trials import store
    from ringcast.spark.lineage import Run

    skew = {"uav*-camera": round(args.skew * 1e6)} if args.skew else {}
    settings = Settings(seed=args.seed, seconds=args.seconds, loss=args.loss, skew_ns=skew)
    output.progress("simulating")
    with Run(lake, "simulate") as this:
        for table, rows in store(lake, Mission(settings), this.id).items():
            this.wrote(table, rows)
    if output.json:
        output.document(this.outputs)
    else:
        output.table(["written", "rows"], [[table, str(rows)] for table, rows in this.outputs.items()])
    return 0


def _compare(args: argparse.Namespace, output: Output, spark: SparkSession, lake: Lake) -> int:
    from ringcast.rescue import Settings
    from ringcast.rescue.trials import compare

    scores = compare(spark, Settings(seed=args.seed, seconds=args.seconds), output.progress)
    rows: list[dict[str, Any]] = [
        {
            "condition": name, "recall": one.recall, "precision": one.precision, "missed": one.missed,
            "false_alarms": one.false_alarms, "error_m": one.error_m,
        }
        for name, one in scores.items()
    ]  # fmt: skip
    if output.json:
        output.document(rows)
    else:
        heads = ["condition", "recall", "precision", "missed", "false alarms", "error in m"]
        output.table(heads, [[c if isinstance(c, str) else f"{c:.3g}" for c in row.values()] for row in rows])
    return 0


def _report(args: argparse.Namespace, output: Output, spark: SparkSession, lake: Lake) -> int:
    from ringcast.rescue import Settings
    from ringcast.rescue.trials import compare
    from ringcast.spark.report import write_report

    scores = compare(spark, Settings(), output.progress) if args.compare else None
    output.progress("drawing")
    path = str(write_report(lake, args.out, trials=scores))
    if output.json:
        output.document({"report": path})
    else:
        output.line(path)
    return 0


def _compact(args: argparse.Namespace, output: Output, spark: SparkSession, lake: Lake) -> int:
    from ringcast.spark.tables import find, names

    rows: list[dict[str, Any]] = []
    for name in args.tables or names():
        table = find(name)
        if lake.versions(table):
            output.progress(f"compacting {name}")
            done = lake.compact(table, grace_s=args.grace * 3600, now_s=time.time())
            rows.append({"table": name, "rewritten": done.removed, "into": done.files})
    if output.json:
        output.document(rows)
    else:
        output.table(["table", "files", "into"], [[r["table"], str(r["rewritten"]), str(r["into"])] for r in rows])
    return 0


def _lineage(args: argparse.Namespace, output: Output, spark: SparkSession, lake: Lake) -> int:
    from ringcast.spark.lineage import ancestry, lineage
    from ringcast.spark.tables import find

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


def _tables(args: argparse.Namespace, output: Output, spark: SparkSession, lake: Lake) -> int:
    from ringcast.spark.tables import find, names

    rows: list[dict[str, Any]] = []
    for name in names():
        table = find(name)
        state = lake.state(table)
        size = sum(file.size for file in state.files.values())
        rows.append(
            {
                "table": name, "rows": state.rows, "files": len(state.files), "bytes": size,
                "partitions": len({file.partition for file in state.files.values()}),
                "versions": len(lake.versions(table)), "commits": state.number + 1, "about": table.about,
            }
        )  # fmt: skip
    if output.json:
        output.document(rows)
    else:
        heads = ["table", "rows", "files", "bytes", "partitions", "versions", "commits", "what"]
        output.table(heads, [[str(cell) for cell in row.values()] for row in rows])
    return 0


def _action(actions: Any, name: str, about: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=about, description=about)
    lake = os.environ.get(_LAKE, "lake")
    parser.add_argument("--lake", metavar="DIR", default=lake, help=f"where the tables are (default: {_LAKE}, or lake)")
    parser.add_argument("--master", metavar="URL", help="a Spark cluster (default: embedded, all cores)")
    add_json(parser)
    return parser
