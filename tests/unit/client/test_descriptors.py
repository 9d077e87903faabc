import os
import resource

import pytest

from ringcast.client.descriptors import Waker, copies
from ringcast.control.link import close_all
from ringcast.errors import ResourceLimit


def test_copies_are_of_the_same_file_under_other_numbers():
    read, write = os.pipe()
    kept = copies((read, write))
    assert not {read, write} & set(kept)
    assert [os.path.sameopenfile(a, b) for a, b in zip(kept, (read, write), strict=True)] == [True, True]
    close_all([read, write, *kept])


def test_half_of_the_copies_are_none():
    read, write = os.pipe()
    before = set(os.listdir("/proc/self/fd"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, before)) + 2, hard))
        while True:
            try:
                taken.append(os.dup(read))
            except OSError:
                break
        os.close(taken.pop())
        with pytest.raises(ResourceLimit, match="ulimit"):
            copies((read, write))
        taken.append(os.dup(read))  # the one place that was free still is
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        close_all([read, write, *taken])


def test_a_waker_wakes_and_goes_with_its_last_reference():
    waker = Waker()
    waker.wake()
    waker.wake()
    waker.quiet()
    with pytest.raises(BlockingIOError):
        waker.quiet()
    fd = waker.fd
    del waker
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
