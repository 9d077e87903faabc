import threading

import pytest

from ringcast.record import disk


@pytest.mark.parametrize("text", ["best-effort:0", "best-effort:7", "idle"])
def test_what_the_kernel_has_is_what_was_taken_and_new_threads_have_it_too(text):
    found = []

    def run():
        disk.take(disk.read(text))
        inner = threading.Thread(target=lambda: found.append(disk.held()))
        inner.start()
        inner.join()
        found.append(disk.held())

    thread = threading.Thread(target=run)  # of its own: this one keeps what it has
    thread.start()
    thread.join()
    assert [one.text for one in found] == [text, text]


@pytest.mark.parametrize("text", ["", "fast", "realtime", "realtime:8", "best-effort:x", "idle:1"])
def test_what_is_none(text):
    with pytest.raises(ValueError, match="an I/O priority is"):
        disk.read(text)
