"""Pictures of the conference's page, for its documentation."""

from __future__ import annotations

import os
from pathlib import Path

from ringcast.lab.conference.people import TONES, Person

__all__ = ["TONES", "Person", "screenshot"]


def screenshot(person: Person, name: str, place: Path) -> None:
    """For the documentation, where RINGCAST_SCREENSHOTS names its folder; else beside the test's other files."""
    folder = Path(os.environ.get("RINGCAST_SCREENSHOTS", place))
    person.page.screenshot(path=str(folder / name), full_page=True)
