import pytest

from ringcast.measure.receiving import percentile, summarise


def bound(bucket: int) -> int:
    return 10 * (bucket + 1)


@pytest.mark.parametrize(("share", "expected"), [(0.5, 10), (0.9, 20), (0.99, 30), (1.0, 30), (0.0, 10)])
def test_a_percentile_is_its_buckets_upper_bound(share, expected):
    assert percentile([50, 40, 10], share, bound) == expected


def test_one_entry_is_every_percentile():
    assert {percentile([0, 0, 1, 0], share, bound) for share in (0.01, 0.5, 1.0)} == {30}


def test_no_entries_have_no_percentile():
    assert percentile([0, 0], 0.5, bound) is None


def test_counters_are_taken_over():
    stats = summarise({"received": 3, "lost": 2, "bytes": 30, "corrupt": 1, "rings": 4}, [3], bound)
    assert (stats.received, stats.lost, stats.bytes, stats.corrupt, stats.rings) == (3, 2, 30, 1, 4)
    assert stats.latency_p50_ns == stats.latency_max_ns == 10
