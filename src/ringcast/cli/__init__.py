"""The command line: one program, `ringcast VERB`, one file per verb. `ringcast.cli.program` says how a verb is run."""

from ringcast.cli.program import main

__all__ = ["main"]
