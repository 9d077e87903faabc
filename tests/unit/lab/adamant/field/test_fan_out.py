from __future__ import annotations

from ringcast.lab.adamant.field import fan_out

TRACE = """\
100 read(0, "{\\"do\\"", 8192) = 120
101 sendmmsg(7, [...], 1, 0) = 1
100 sendmmsg(7, [...], 1, MSG_DONTWAIT <unfinished ...>
101 futex(0x7f, FUTEX_WAIT_PRIVATE, 0, NULL) = 0
100 <... sendmmsg resumed>) = 1
100 sendmmsg(7, [...], 1, MSG_DONTWAIT) = 1
100 --- SIGCHLD {si_signo=SIGCHLD} ---
100 write(1, "{\\"ok\\"", 20) = 20
"""


def test_system_calls_are_counted_once_and_by_thread() -> None:
    assert fan_out.calls_of(TRACE, "100") == {"read": 1, "sendmmsg": 2, "write": 1}
    assert fan_out.calls_of(TRACE, "101") == {"sendmmsg": 1, "futex": 1}


def test_fan_out_is_equal_or_not() -> None:
    one, same, dearer = fan_out.Cost(1.0, 1.0, 1.004), fan_out.Cost(1.005, 1.0, 1.01), fan_out.Cost(8.0, 8.0, 8.0)
    for many, met in ((same, True), (dearer, False)):
        calls, packets, sends = fan_out.conclude({1: one, 8: many}).rows
        assert (calls.met, packets.met, sends.met) == (met, met, None)
