"""The environment of programs that start a Spark of their own in a test: what starts fast, not what runs for hours."""

from __future__ import annotations

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
_SETTINGS = {
    # Rows by the dozen: compiling what handles them takes longer than handling them.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.subexpressionElimination.enabled": "false",
}


def quick(**more: str) -> dict[str, str]:
    """To be added to the environment; `more` are Spark's settings with _ for each dot."""
    settings = {**_SETTINGS, **{name.replace("_", "."): value for name, value in more.items()}}
    words = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    # Java reads the first variable wherever it is started, and says so in its log.
    return {"JDK_JAVA_OPTIONS": JAVA, "PYSPARK_SUBMIT_ARGS": f"{words} pyspark-shell"}
