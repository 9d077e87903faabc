"""A problem in a file, and the drawing of its answer: what `ringcast admit` and `ringcast place` share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ringcast.admission import AdmissionError
from ringcast.placement import PlacementError

T = TypeVar("T")
Error = type[AdmissionError] | type[PlacementError]


def read(path: Path, how: Callable[..., T], error: Error) -> T:
    """TOML, or JSON when its name ends so. Raises `error`, with the path before the field."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise error(str(path), f"cannot be read: {reason}") from exc
    try:
        return how(text, toml=path.suffix.lower() != ".json")
    except error as exc:
        raise error(f"{path}: {exc.field}" if exc.field else str(path), exc.reason) from exc


def write(path: Path, text: str, error: Error) -> None:
    """Raises `error`."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise error(str(path), f"cannot be written: {exc.strerror or exc}") from exc
