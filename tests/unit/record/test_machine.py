"""What figures say of where they come from: the machine, and the code."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

from ringcast.record.machine import SHOWS_RESULTS, code_version, digest, this_machine


def sources(folder: Path) -> Path:
    (folder / "lab" / "report").mkdir(parents=True)
    (folder / "lab" / "__pycache__").mkdir()
    (folder / "lab" / "grid.py").write_text("SIZES = (1, 2)\n")
    return folder


def test_a_line_of_code_makes_another_version_wherever_it_lies(tmp_path: Path) -> None:
    one, other = sources(tmp_path / "one"), sources(tmp_path / "other")
    assert digest(one) == digest(other)
    (other / "lab" / "grid.py").write_text("SIZES = (1, 3)\n")
    assert digest(one) != digest(other)
    (other / "lab" / "grid.py").rename(other / "lab" / "sizes.py")
    (other / "lab" / "sizes.py").write_text("SIZES = (1, 2)\n")
    assert digest(one) != digest(other), "another name"


def test_a_native_module_that_was_built_anew_is_another_version(tmp_path: Path) -> None:
    folder, native = sources(tmp_path / "package"), tmp_path / "_core.so"
    native.write_bytes(b"built")
    before = digest(folder, more=[native])
    native.write_bytes(b"built anew")
    assert before != digest(folder, more=[native])


def test_what_python_leaves_behind_and_what_only_shows_results_is_no_other_version(tmp_path: Path) -> None:
    folder = sources(tmp_path / "package")
    before = digest(folder, SHOWS_RESULTS)
    (folder / "lab" / "__pycache__" / "grid.cpython-311.pyc").write_bytes(b"compiled")
    (folder / "lab" / "report" / "page.py").write_text("HEADS = ()\n")
    assert digest(folder, SHOWS_RESULTS) == before
    assert digest(folder) != before


def test_results_say_the_version_and_the_build() -> None:
    assert re.fullmatch(rf"{re.escape(metadata.version('ringcast'))}\+[0-9a-f]{{10}}", code_version())


def test_a_machine_is_told_with_its_cores_and_its_memory() -> None:
    assert re.search(r", \d+ cores, \d+ GiB RAM, Linux ", this_machine())
