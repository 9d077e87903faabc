"""Long messages by tcp arrive as they were sent or not at all, however long they are and however hasty their sender."""

import pytest


@pytest.mark.parametrize("size", [65_535, 65_537, (1 << 20) + 3])
def test_every_length_arrives_as_it_was_sent(make_mesh, eventually, size):
    a, b = make_mesh(2)
    pub = a.session.publisher("long", capacity_bytes=8 << 20, max_wait_s=30.0)
    eventually(lambda: b.knows("long"))
    sub = b.session.subscribe("long", reliable=True)
    for number in range(12):
        body = bytes([number]) * (size - 2) + b"%02d" % number
        pub.send(body)
        pub.send(b"%d" % number)  # a short one between
        message = sub.recv(timeout=30)
        assert (message.lost, message.data == body) == (0, True)
        assert sub.recv(timeout=30).data == b"%d" % number


def test_a_publisher_that_does_not_wait_never_shows_half_of_two_messages(make_mesh, eventually):
    a, b = make_mesh(2)
    tag = a.session.tag("hasty", capacity_bytes=1 << 20, depth=16, max_wait_s=0.001)
    pub = tag.publisher(on_slow="skip")
    eventually(lambda: b.knows("hasty"))
    sub = b.session.subscribe("hasty", reliable=True)
    for number in range(400):
        pub.send(bytes([number % 251]) * 300_000)
    pub.send(b"end")
    seen = 0
    while (message := sub.recv(timeout=30)).data != b"end":
        assert len(message.data) == 300_000
        assert len(set(message.data)) == 1
        assert message.data[0] == message.seq % 251
        seen += 1
    assert seen > 0
