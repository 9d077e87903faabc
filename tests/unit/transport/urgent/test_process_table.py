import os
from pathlib import Path

from ringcast.transport.urgent.process_table import card_interrupts, tasks


def test_this_process_is_in_it_with_its_name():
    own = next(task for task in tasks() if task.pid == os.getpid())
    assert own.name == Path("/proc/self/comm").read_text().strip()
    assert own.policy == "other"


def test_what_cannot_be_read_is_left_out(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "uptime").write_text("x")
    assert tasks(tmp_path) == []


def test_interrupts_of_cards_are_found_by_number(tmp_path):
    (tmp_path / "eth0" / "device" / "msi_irqs" / "30").mkdir(parents=True)
    (tmp_path / "wlan0" / "device").mkdir(parents=True)
    (tmp_path / "wlan0" / "device" / "irq").write_text("17\n")
    (tmp_path / "lo").mkdir()
    assert card_interrupts(tmp_path) == {30, 17}
    assert card_interrupts(tmp_path / "none") == set()
