"""`ringcast pipeline`: run the data pipelines, and see what their tables hold and where it came from."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringcast.cli.parts import units
from ringcast.cli.parts.instants import instant
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.pipelines import tables as pipeline_tables
from ringcast.cli.program import Misuse
from ringcast.errors import RingcastError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ringcast.spark.declaration import Pipeline
    from ringcast.spark.lake import Lake
    from ringcast.spark.lineage import Run
    from ringcast.spark.tags.outlet import Outlet

HELP = "Run the data pipelines on Spark; see what their tables hold and where it came from."

EPILOG = """\
'ringcast pipeline list' tells which pipelines there are; docs/adding-a-pipeline.md how to add one.

examples:
  ringcast pipeline run ingest --input recording/         what 'ringcast record' wrote
  ringcast pipeline run refine --from 2026-05-01T10:00 --to 2026-05-01T12:00
  ringcast pipeline run qos --master spark://host:7077
  ringcast pipeline run train --lake out/lake --metric relate2 --model best.json
  ringcast pipeline simulate --seconds 10 --loss 0.03     a search and rescue with known truth
  ringcast pipeline report --out report.html
  ringcast pipeline lineage gold.detections
  ringcast pipeline tables --describe silver.gps
  ringcast pipeline sql "select tag, count(*) from bronze.messages group by tag"
  ringcast pipeline new room_heat                         a pipeline of your own, with its test
  ringcast pipeline run room_heat --stream --publish lab/heat
"""
_LAKE = "RINGCAST_LAKE"


class NoSpark(RingcastError):
    """The pipelines need pyspark, which is not installed."""

    def __init__(self, missing: str) -> None:
        self.missing = missing
        super().__init__(f"the pipelines need {missing}; install it with: pip install 'ringcast[spark]'")


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    run = _action(actions, "run", "run a pipeline over all there is, or over whole hours of it")
    run.add_argument("name", metavar="NAME")
    run.add_argument(
        "--from", dest="begin", metavar="T", type=instant, help="from this time on, UTC (2026-05-01T10:00)"
    )
    run.add_argument("--to", dest="end", metavar="T", type=instant, help="up to this time; hours are done whole")
    run.add_argument("--input", metavar="DIR", help="a recording (ingest), or results as Parquet (fit, train)")
    run.add_argument("--tag", metavar="PATTERN", help="what the rings of these tags hold now (ingest), or live")
    run.add_argument("--socket", metavar="PATH", help="the daemon to read and publish tags through")
    run.add_argument("--publish", metavar="TAG", help="send what it writes on this tag, too")
    run.add_argument("--set", dest="chosen", action="append", default=[], metavar="NAME=VALUE",
                     help="an option of the pipeline (repeatable; 'list' tells which)")  # fmt: skip
    run.add_argument("--stream", action="store_true", help="live, from tags, until Ctrl-C")
    run.add_argument("--seconds", type=units.positive, metavar="S", help="live for so long")
    run.add_argument("--start", choices=("latest", "earliest"), default="latest",
                     help="live: from now on, or from what the rings hold (default: latest)")  # fmt: skip
    run.add_argument("--recording", metavar="DIR", help="live: what the rings no longer hold is read from there")
    run.add_argument("--checkpoint", metavar="DIR", help="live: remembers there how far it came (default: in the lake)")
    run.add_argument("--wait", dest="watermark", default="2 seconds", metavar="TIME",
                     help="live: how long to wait for what is late (default: 2 seconds)")  # fmt: skip
    run.add_argument("--family", action="append", metavar="NAME", help="only this family (refine; repeatable)")
    run.add_argument("--window", type=units.positive, metavar="S", help="per row (qos; default: 1 s)")
    run.add_argument("--deadline", type=units.positive, metavar="MS", help="(qos; default: 50 ms)")
    run.add_argument("--metric", help="what the model is to keep low (train; default: relate2)")
    run.add_argument("--experiment", metavar="NAME", help="only its results (fit, train; default: all there are)")
    run.add_argument("--splits", metavar="N", type=units.count,
                     help="times that other environments are held out (train; default: 3)")  # fmt: skip
    run.add_argument("--model", metavar="FILE", help="where the model goes (train; default: in the lake)")
    simulate = _action(actions, "simulate", "put a made-up search and rescue with known truth into the lake")
    compare = _action(actions, "compare", "find its survivors in time, with clocks apart, and with loss")
    for one in (simulate, compare):
        one.add_argument("--seconds", type=units.positive, default=4.0, help="of the mission (default: 4)")
    simulate.add_argument("--seed", type=units.index, default=7, help="(default: 7)")
    compare.add_argument("--seeds", type=units.count, metavar="N", default=20,
                         help="missions, each with another seed (default: 20); recall is by survivor")  # fmt: skip
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
    tables = _action(actions, "tables", "list tables: rows, files, commits")
    tables.add_argument("--describe", metavar="TABLE", help="one table: columns, rows, who makes it of what, quality")
    _action(actions, "list", "list pipelines: what they read and write, and their options")
    sql = _action(actions, "sql", "a query over the lake's tables, by their names")
    sql.add_argument("query", metavar="QUERY")
    sql.add_argument("--rows", type=units.count, default=100, metavar="N", help="at most so many (default: 100)")
    new = _action(actions, "new", "write a package with a working pipeline and its test")
    new.add_argument("name", metavar="NAME")
    new.add_argument("--out", metavar="DIR", default=".", help="where the package goes (default: here)")
    upgrade = _action(actions, "upgrade", "convert a lake or a recording that an older Ringcast wrote, once")
    upgrade.add_argument("path", metavar="DIR", nargs="?", help="(default: the lake)")


def run(args: argparse.Namespace) -> int:
    output = Output(args.json)
    offline = {"new": _new, "upgrade": _upgrade, "list": _list}
    actions = {
        "run": _run, "simulate": _simulate, "compare": _compare, "report": _report, "compact": pipeline_tables.compact,
        "lineage": pipeline_tables.lineage, "tables": pipeline_tables.tables, "sql": pipeline_tables.sql,
    }  # fmt: skip
    if args.action in offline:
        return _needing_spark(offline[args.action], args, output)
    if args.action == "run" and (args.begin is None) != (args.end is None):
        raise Misuse("a span has two ends: give both --from and --to, or neither")
    output.progress("starting Spark")
    with _session(args.master) as spark:
        from ringcast.spark.lake import Lake

        return actions[args.action](args, output, spark, Lake(spark, args.lake))


def _session(master: str | None) -> AbstractContextManager[SparkSession]:
    try:
        importlib.import_module("pyspark.sql")
        session: AbstractContextManager[SparkSession] = importlib.import_module("ringcast.spark.session").opened(master)
    except ImportError as exc:
        raise NoSpark(exc.name or "pyspark") from exc
    return session


def _needing_spark(action: Any, args: argparse.Namespace, output: Output) -> int:
    """The package, not a session."""
    try:
        done: int = action(args, output)
    except ImportError as exc:
        raise NoSpark(exc.name or "pyspark") from exc
    return done


def _run(args: argparse.Namespace, output: Output, spark: SparkSession, lake: Lake) -> int:
    from ringcast.spark import declaration, jobs
    from ringcast.spark.tags.outlet import Outlet

    try:
        pipeline = declaration.find(args.name)
    except declaration.NoSuchPipeline as exc:
        raise Misuse(str(exc)) from exc
    options = _options(args, pipeline)
    outlet = Outlet(args.publish, args.socket) if args.publish else None
    begin = time.monotonic()

    def say(text: str) -> None:
        output.progress(f"{args.name}: {text} ({time.monotonic() - begin:.0f} s)")

    if args.stream:
        done = _live(args, spark, lake, pipeline, options, outlet, say)
    else:
        done = jobs.run(args.name, lake, args.begin, args.end, _source(args, spark), options, say, outlet)
    if output.json:
        output.document({"run": done.id, "inputs": done.inputs, "outputs": done.outputs, "counts": done.counts})
        return 0
    output.table(["written", "rows"], [[table, str(rows)] for table, rows in done.outputs.items()])
    if done.counts:
        output.line()
        output.table(["counted", "number"], [[name, str(number)] for name, number in done.counts.items()])
    output.note(f"run {done.id}, {time.monotonic() - begin:.1f} s")
    return 0


def _options(args: argparse.Namespace, pipeline: Pipeline) -> dict[str, Any]:
    """Those that were given, by `--set` in the type of the option's default."""
    given = {
        "families": args.family, "window_s": args.window, "metric": args.metric, "experiment": args.experiment,
        "deadline_ns": None if args.deadline is None else round(args.deadline * 1e6), "model": args.model,
        "splits": args.splits,
    }  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    for text in args.chosen:
        name, equals, value = text.partition("=")
        if not equals:
            raise Misuse(f"--set takes NAME=VALUE, not {text!r}")
        kind = type(pipeline.options.get(name, ""))
        try:
            options[name] = kind(value) if kind in (int, float, str) else value
        except ValueError as exc:
            raise Misuse(f"{name} is {value!r}, not {kind.__name__}") from exc
    return options


def _live(
    args: argparse.Namespace, spark: SparkSession, lake: Lake, pipeline: Pipeline, options: dict[str, Any],
    outlet: Outlet | None, say: Callable[[str], None],
) -> Run:  # fmt: skip
    """Until Ctrl-C, or as long as was asked for. Raises QueryFailed."""
    from ringcast.spark.lineage import Run
    from ringcast.spark.streams import Streams
    from ringcast.spark.tags.live import messages_for

    ended = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: ended.set())
    try:
        with Run(lake, args.name) as run:
            streams = Streams(
                lake, run, args.checkpoint or lake.path / "checkpoints", every_s=0.0, watermark=args.watermark
            )
            messages = messages_for(spark, pipeline, args.tag, args.socket, args.start, args.recording)
            streams.start(args.name, messages, publish=outlet, options=options)
            deadline = None if args.seconds is None else time.monotonic() + args.seconds
            say("live")
            while not ended.wait(0.5) and (deadline is None or time.monotonic() < deadline):
                streams.check()
                say(", ".join(f"{rows} rows in {table}" for table, rows in run.outputs.items()) or "waiting")
            streams.stop()
    finally:
        signal.signal(signal.SIGINT, before)
    return run


def _source(args: argparse.Namespace, spark: SparkSession) -> DataFrame | None:
    if args.name == "ingest" and (args.input or args.tag):
        from ringcast.spark.tags.frames import held, recorded

        if not args.tag:
            return recorded(spark, args.input)
        if not args.input:
            return held(spark, args.tag, args.socket)
        reader = spark.read.format("ringcast").option("decode", "false").option("path", args.input)
        reader = reader.option("tag", args.tag)
        return (reader.option("socket", args.socket) if args.socket else reader).load()
    if args.input:
        if "://" not in args.input and not os.path.exists(args.input):
            raise Misuse(f"there is no {args.input}; 'ringcast lab run adamant' writes results into a lake")
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

    scores = compare(spark, Settings(seconds=args.seconds), args.seeds, output.progress)
    rows: list[dict[str, Any]] = [
        {
            "condition": name, "survivors": one.survivors, "recall": one.recall, "low": one.low, "high": one.high,
            "precision": one.precision, "missed": one.missed, "false_alarms": one.false_alarms,
            "error_m": one.error_m,
        }
        for name, one in scores.items()
    ]  # fmt: skip
    if output.json:
        output.document(rows)
    else:
        heads = ["condition", "survivors", "recall", "95 %: from", "to", "precision", "missed", "false alarms",
                 "error in m"]  # fmt: skip
        output.table(heads, [[c if isinstance(c, str) else f"{c:.3g}" for c in row.values()] for row in rows])
    return 0


def _report(args: argparse.Namespace, output: Output, spark: SparkSession, lake: Lake) -> int:
    from ringcast.rescue import Settings
    from ringcast.rescue.report import write_report
    from ringcast.rescue.trials import compare

    scores = compare(spark, Settings(), say=output.progress) if args.compare else None
    output.progress("drawing")
    path = str(write_report(lake, args.out, trials=scores))
    if output.json:
        output.document({"report": path})
    else:
        output.line(path)
    return 0


def _list(args: argparse.Namespace, output: Output) -> int:
    from ringcast.spark.declaration import pipelines

    rows: list[dict[str, Any]] = [
        {
            "pipeline": one.name, "about": one.about, "reads": [source.name for source in one.reads.values()],
            "writes": one.writes.name if one.writes is not None else None,
            "options": {name: str(default) for name, default in one.options.items()}, "from": one.module,
        }
        for one in pipelines()
    ]  # fmt: skip
    if output.json:
        output.document(rows)
        return 0
    cells = [
        [str(row["pipeline"]), str(row["about"]), ", ".join(row["reads"]), row["writes"] or "-",
         ", ".join(f"{name}={value}" for name, value in row["options"].items())]
        for row in rows
    ]  # fmt: skip
    output.table(["pipeline", "what", "reads", "writes", "options"], cells)
    return 0


def _new(args: argparse.Namespace, output: Output) -> int:
    from ringcast.spark.scaffold import write_pipeline

    made = write_pipeline(args.name, Path(args.out))
    if output.json:
        output.document([str(path) for path in made])
        return 0
    for path in made:
        output.line(str(path))
    output.note(f"install it with: pip install -e {made[0].parent}")
    return 0


def _upgrade(args: argparse.Namespace, output: Output) -> int:
    from ringcast.spark.upgrade import upgrade

    done = upgrade(args.path or args.lake)
    if output.json:
        output.document(done)
    elif done:
        output.table(["table", "files"], [[name, str(files)] for name, files in done.items()])
    else:
        output.note("there is nothing to convert")
    return 0


def _action(actions: Any, name: str, about: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=about, description=about)
    lake = os.environ.get(_LAKE, "lake")
    parser.add_argument("--lake", metavar="DIR", default=lake, help=f"where the tables are (default: {_LAKE}, or lake)")
    parser.add_argument("--master", metavar="URL", help="a Spark cluster (default: embedded, all cores)")
    add_json(parser)
    return parser
