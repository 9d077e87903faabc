"""A recording of an older Ringcast, with a folder of commits, becomes a Delta table. Its data files stay."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ringcast.errors import RecordingError
from ringcast.record.commits import decode_untrusted, is_old
from ringcast.record.delta import described
from ringcast.record.recording import bronze_table


def upgrade_recording(path: str | os.PathLike[str]) -> int:
    """How many data files it names now; 0 when there was nothing to do. One that was interrupted is begun again.

    Raises RecordingError.
    """
    root = Path(path)
    if not is_old(root):
        return 0
    files = []
    for commit in sorted((root / "commits").glob("[0-9]*.json")):
        name = decode_untrusted(commit, commit.read_bytes()).file
        if "/" in name or name.startswith("."):
            raise RecordingError(str(commit), f"it names a file outside the recording: {name!r}")
        files.append(described(root, f"data/{name}"))
    bronze_table(root).commit(files, told={"upgraded": "commits"})
    shutil.rmtree(root / "commits")
    return len(files)
