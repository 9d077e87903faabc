"""Files that a daemon keeps: with or without descriptors of their own, they can be opened as long as they are kept."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from ringcast import _core
from ringcast.control.descriptor import Descriptor
from ringcast.daemon.rings import kept_files
from ringcast.daemon.rings.kept_files import KeptFile, without_descriptors
from ringcast.errors import ResourceLimit

needs_kernel = pytest.mark.skipif(not without_descriptors(), reason="this kernel keeps no files without descriptors")


class NoStore:
    """As on a kernel that cannot."""

    def keep(self, fd: int) -> int | None:
        return None


@pytest.fixture(params=["in the store", "by its descriptor"])
def keep(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], KeptFile]:
    if request.param == "by its descriptor":
        monkeypatch.setattr(kept_files, "_STORE", NoStore())
    elif not without_descriptors():
        pytest.skip("this kernel keeps no files without descriptors")

    def kept(content: bytes) -> KeptFile:
        return KeptFile(Descriptor(_memory(content)))

    return kept


def _memory(content: bytes) -> int:
    fd = os.memfd_create("kept")
    os.write(fd, content)
    return fd


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_what_is_opened_is_the_file_and_no_child_inherits_it(keep: Callable[[bytes], KeptFile]) -> None:
    files = [keep(b"one"), keep(b"two")]
    opened = [file.open() for file in files]
    assert [os.pread(fd.fileno(), 10, 0) for fd in opened] == [b"one", b"two"]
    assert not any(os.get_inheritable(fd.fileno()) for fd in opened)


def test_all_who_hold_it_at_once_share_a_descriptor(keep: Callable[[bytes], KeptFile]) -> None:
    file = keep(b"one")
    first = file.open()
    assert file.open() is first


def test_nothing_stays_open_when_it_is_no_longer_kept(keep: Callable[[bytes], KeptFile]) -> None:
    keep(b"the first makes the table")
    before = _open_files()
    file = keep(b"one")
    file.open()
    del file
    assert _open_files() == before


@needs_kernel
def test_a_kept_file_has_no_descriptor_while_nobody_uses_it() -> None:
    KeptFile(Descriptor(_memory(b"the first makes the table")))
    before = _open_files()
    files = [KeptFile(Descriptor(_memory(b"%d" % number))) for number in range(100)]
    assert _open_files() == before
    assert os.pread(files[42].open().fileno(), 10, 0) == b"42"


@needs_kernel
def test_places_are_used_again_and_there_are_more_than_one_table_of_them() -> None:
    store = _core.FileStore()
    fd = _memory(b"x")
    places = [store.keep(fd) for _ in range(5000)]
    assert None not in places
    assert len(set(places)) == len(store) == 5000
    dropped = places[17]
    assert dropped is not None
    store.drop(dropped)
    assert store.keep(fd) == dropped
    os.close(fd)


@needs_kernel
def test_a_place_where_nothing_is_kept_is_refused() -> None:
    store = _core.FileStore()
    with pytest.raises(ValueError, match="nothing is kept"):
        store.open(3)
    fd = _memory(b"x")
    place = store.keep(fd)
    os.close(fd)
    assert place is not None
    store.drop(place)
    with pytest.raises(ResourceLimit):
        store.open(place)
    assert store.keep(-1) is None
    assert len(store) == 0


@needs_kernel
def test_a_forked_child_leaves_its_parents_files_alone() -> None:
    store = _core.FileStore()
    fd = _memory(b"x")
    place = store.keep(fd)
    os.close(fd)
    assert place is not None
    child = os.fork()
    if child == 0:
        store.drop(place)
        os._exit(0 if store.keep(0) is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    opened = Descriptor(store.open(place))
    assert os.pread(opened.fileno(), 10, 0) == b"x"
