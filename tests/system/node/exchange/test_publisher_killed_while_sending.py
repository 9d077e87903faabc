"""SIGKILL in the middle of a message: no reader ever sees a torn one, and the rest continues."""

import pytest

import ringcast

SENDER = """
    import ringcast
    with ringcast.connect() as session:
        pub = session.publisher("torrent", capacity_bytes=1 << 20, depth=64)
        frames = [bytes([i]) * 50_000 for i in range(256)]
        print("sending")
        i = 0
        while True:
            pub.send(frames[i % 256])
            i += 1
    """


@pytest.mark.parametrize("round", range(3))
def test_every_message_that_was_received_is_whole(session, program, eventually, round):
    sub = session.subscribe("torrent", capacity_bytes=1 << 20, depth=64)
    sender = program(SENDER)
    for _ in range(50):
        whole(sub.recv(timeout=30))
    sender.kill()
    eventually(lambda: session.tag("torrent").publishers() == [])
    try:
        while True:
            whole(sub.recv_nowait())
    except ringcast.WouldBlock:
        pass
    history = session.tag("torrent").history()
    oldest, newest = history.bounds()
    for seq in range(oldest, newest + 1):
        whole(history.at(seq))


def whole(msg):
    assert msg.data == bytes([msg.seq % 256]) * 50_000


def test_its_history_outlives_it_and_the_next_publisher_is_read_from_its_start(session, program, eventually):
    tag = session.tag("torrent", capacity_bytes=1 << 20, depth=64)
    sub = tag.subscribe()
    sender = program(SENDER)
    sub.recv(timeout=30)
    sender.kill()
    eventually(lambda: tag.publishers() == [])
    assert [row.alive for row in tag.publishers(left=True)] == [False]
    left = tag.history()
    last = left.latest()
    whole(last)
    pub = tag.publisher()
    pub.send(b"fresh")
    while (msg := sub.recv(timeout=30)).publisher.pid == sender.pid:
        whole(msg)
    assert (msg.seq, msg.data, msg.lost) == (0, b"fresh", 0)
    # Both number their messages; the one that is alive is meant, unless the other is asked for.
    both = tag.history()
    assert both.at(0).data == b"fresh"
    assert both.latest(back=1).data == last.data
    dead = tag.history(publisher=next(row for row in tag.publishers(left=True) if not row.alive))
    assert dead.latest().data == last.data
    with pytest.raises(ringcast.HistoryError):
        dead.at(last.seq + 1)
