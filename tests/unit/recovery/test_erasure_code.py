"""The native code against an independent one: long multiplication over GF(256), and Gauss on whole matrices."""

from __future__ import annotations

import itertools
import struct
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from recovery_network import KEY, datagrams, place

from ringcast import _core

REPAIR_HEAD = 32


def times(a: int, b: int) -> int:
    """Polynomials over GF(2), reduced by x^8 + x^4 + x^3 + x^2 + 1."""
    product = 0
    for bit in range(8):
        if b >> bit & 1:
            product ^= a << bit
    for bit in range(14, 7, -1):
        if product >> bit & 1:
            product ^= 0x11D << (bit - 8)
    return product


def inverse(a: int) -> int:
    return next(b for b in range(256) if times(a, b) == 1)


def rank(matrix: list[list[int]]) -> int:
    rows, found = [row[:] for row in matrix], 0
    for column in range(len(rows[0])):
        pivot = next((i for i in range(found, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        factor = inverse(rows[found][column])
        rows[found] = [times(factor, value) for value in rows[found]]
        for i in range(len(rows)):
            if i != found and rows[i][column]:
                share = rows[i][column]
                rows[i] = [a ^ times(share, b) for a, b in zip(rows[i], rows[found], strict=True)]
        found += 1
    return found


def repairs_of(packets: list[bytes], c: int) -> list[bytes]:
    sending = _core.Sending(
        ["parity"], lambda *_: None, lambda: 0, key=KEY, tuning={"r": len(packets), "c": c, "flush_ns": 0}
    )
    actions = [action for packet in packets for action in sending.on_sent(packet, 0)]
    return [action[3] for action in actions]


def test_the_first_row_is_xor() -> None:
    assert {_core.erasure_coefficient(0, place) for place in range(64)} == {1}


def test_coefficients_are_a_cauchy_matrix_with_scaled_columns() -> None:
    for row, column in itertools.product(range(64), range(64)):
        cauchy = times(128 ^ column, inverse((128 + row) ^ column))
        assert _core.erasure_coefficient(row, column) == cauchy


def test_every_square_part_can_be_inverted() -> None:
    rng = Random(1)
    for size in range(1, 9):
        for _ in range(20):
            rows, columns = sorted(rng.sample(range(64), size)), sorted(rng.sample(range(64), size))
            assert rank([[_core.erasure_coefficient(i, j) for j in columns] for i in rows]) == size


@settings(max_examples=60, deadline=None, derandomize=True)
@given(sizes=st.lists(st.integers(0, 100), min_size=1, max_size=12), c=st.integers(1, 6))
def test_repairs_are_what_the_matrix_says(sizes: list[int], c: int) -> None:
    packets = [datagrams(seq, bytes([seq * 17 % 251]) * size)[0] for seq, size in enumerate(sizes)]
    longest = max(map(len, packets))
    symbols = [(struct.pack("<H", len(packet)) + packet).ljust(longest + 2, b"\0") for packet in packets]
    for row, repair in enumerate(repairs_of(packets, c)):
        expected = bytearray(longest + 2)
        for column, symbol in enumerate(symbols):
            factor = times(128 ^ column, inverse((128 + row) ^ column))
            expected = bytearray(a ^ times(factor, b) for a, b in zip(expected, symbol, strict=True))
        assert repair[REPAIR_HEAD + 8 * len(packets) :] == bytes(expected)
        assert repair[24] == row


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    r=st.integers(1, 16), c=st.integers(1, 8), seed=st.integers(0, 2**32), lost_repairs=st.integers(0, 3)
)  # fmt: skip
def test_any_r_of_all_give_back_the_rest(r: int, c: int, seed: int, lost_repairs: int) -> None:
    rng = Random(seed)
    packets = [datagrams(seq, rng.randbytes(rng.randrange(80)))[0] for seq in range(r)]
    repairs = repairs_of(packets, c)[: max(0, c - lost_repairs)]
    missing = set(rng.sample(range(r), min(r, len(repairs))))
    receiving = _core.Receiving(["parity"], key=KEY)
    arrivals = [packet for i, packet in enumerate(packets) if i not in missing] + repairs
    rng.shuffle(arrivals)
    delivered = [a[1] for packet in arrivals for a in receiving.on_datagram(packet, 0) if a[0] == "deliver"]
    assert sorted(delivered, key=place) == packets
