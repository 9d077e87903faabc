import os
from pathlib import Path

from ringcast.daemon.priority.process_table import tasks


def test_this_process_is_in_it_with_its_name():
    own = next(task for task in tasks() if task.pid == os.getpid())
    assert own.name == Path("/proc/self/comm").read_text().strip()
    assert own.policy == "other"


def test_what_cannot_be_read_is_left_out(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "uptime").write_text("x")
    assert tasks(tmp_path) == []
