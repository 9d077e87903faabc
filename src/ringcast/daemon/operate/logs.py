"""A daemon's log, on standard error: lines of text, or of JSON for programs that collect logs."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime

_TEXT = "%(asctime)s ringcast daemon[%(process)d] %(levelname)s: %(message)s"


class JsonLines(logging.Formatter):
    """One object a line: time (UTC), level, logger, node, pid, message, and for an exception its trace."""

    def __init__(self, node: str) -> None:
        super().__init__()
        self._node = node

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(), "logger": record.name, "node": self._node, "pid": os.getpid(),
            "message": record.getMessage(),
        }  # fmt: skip
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return json.dumps(said)


def set_up(form: str, level: str, node: str) -> None:
    """Log `level` and worse in this form from now on; may be called again."""
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.StreamHandler(sys.stderr))
    for handler in root.handlers:
        handler.setFormatter(JsonLines(node) if form == "json" else logging.Formatter(_TEXT))
    root.setLevel(level.upper())
