"""Threads that need the same type for the first time, at once. In a process of their own, which would crash."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from __future__ import annotations
import sys, threading
import msgspec
from ringcast.codec.prepared import decoder_of

sys.setswitchinterval(1e-6)
SOURCE = '''
class Inner{i}(msgspec.Struct):
    a: int = 0
    b: str | None = None
class Outer{i}(msgspec.Struct):
''' + "".join(f"    f{k}: list[Inner{{i}}] | None = None\\n" for k in range(12))
THREADS = 4

for i in range(400):
    exec("from __future__ import annotations\\n" + SOURCE.format(i=i), globals())
    kind = globals()[f"Outer{i}"]
    data, together = msgspec.msgpack.encode(kind()), threading.Barrier(THREADS)

    def decode():
        together.wait()
        assert decoder_of(kind).decode(data) == kind()

    threads = [threading.Thread(target=decode) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("all decoded")
"""


def test_a_type_is_prepared_by_one_thread_at_a_time() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "all decoded\n"), done.stderr
