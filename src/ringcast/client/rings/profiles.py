"""A profile by its name: one of the user's own file, or of those that every node knows.

The file is `$RINGCAST_PROFILES`, or `ringcast/profiles.toml` in the user's configuration. It is read once.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ringcast.control.requests import MAX_PROFILES
from ringcast.errors import BadConfiguration

if TYPE_CHECKING:
    from ringcast.model.profile import Profile

VARIABLE = "RINGCAST_PROFILES"


def named(profile: str | Profile) -> Profile:
    """Raises ValueError (no such profile), BadConfiguration, QosMismatch (its transport cannot do what it asks for)."""
    # Here, because it reads TOML and knows transports, which most programs do without.
    from ringcast.qos.matching import check_carried
    from ringcast.qos.profile import find

    found = find(profile, _known(_path()))
    check_carried(found)
    return found


def own_profiles() -> list[Profile]:
    """Those of the user's file, as many as a request may have. Raises BadConfiguration."""
    from ringcast.qos.profile import built_in

    found = _known(_path())
    return [one for name, one in found.items() if built_in().get(name) != one][:MAX_PROFILES]


def _path() -> Path:
    given = os.environ.get(VARIABLE)
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(given) if given else Path(home) / "ringcast" / "profiles.toml"


@cache
def _known(path: Path) -> dict[str, Profile]:
    from ringcast.qos.profile import built_in, read

    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return built_in()
    except (OSError, UnicodeDecodeError) as exc:
        raise BadConfiguration(str(path), 0, f"it cannot be read: {exc}") from exc
    return {**built_in(), **read(text, str(path))}
