"""Daemons die without a word and come back. Streams go on by themselves: nothing twice, nothing out of order."""

import ringcast


def numbers(messages):
    return [msg.seq for msg in messages]


def read_all(sub):
    got = []
    while True:
        try:
            got.append(sub.recv_nowait())
        except ringcast.WouldBlock:
            return got


def test_the_subscribers_daemon(make_mesh, eventually, take):
    a, b = make_mesh(2)
    pub = a.session.publisher("steady", depth=1024)
    eventually(lambda: b.knows("steady"))
    subs = [b.session.subscribe("steady"), b.session.subscribe("**"), b.session.subscribe("steady", reliable=True)]
    scaled = b.session.subscribe("steady", every=2, at="publisher")
    seen = []
    total = 0
    for round in range(3):
        for _ in range(10):
            total = pub.send(b"before") + 1
        pub.send(b"last %d" % round)
        first = total - 10
        for sub in subs:
            assert numbers(take(sub, b"last %d" % round)) == list(range(first, total + 1))
        while not seen or seen[-1] < total - 1:
            seen.append(scaled.recv(timeout=30).seq)
        b.kill()
        for _ in range(10):
            pub.send(b"between")
        b.restart()
        eventually(lambda: len(b.incoming()) == 3)
        seq = pub.send(b"after %d" % round)
        for sub in subs:
            got = take(sub, b"after %d" % round)
            assert numbers(got) == list(range(total + 1, seq + 1))
            assert {msg.lost for msg in got} == {0}
        while not seen or seen[-1] < seq - 1:
            seen.append(scaled.recv(timeout=30).seq)
    assert seen == list(range(0, seq + 1, 2))


def test_the_publishers_daemon(make_mesh, eventually, take):
    a, b = make_mesh(2)
    pub = a.session.publisher("steady", depth=1024)
    eventually(lambda: b.knows("steady"))
    subs = [b.session.subscribe("steady"), b.session.subscribe("**"), b.session.subscribe("steady", reliable=True)]
    pub.send(b"begin")
    for sub in subs:
        assert numbers(take(sub, b"begin")) == [0]
    for round in range(3):
        a.kill()
        first = pub.send(b"between")
        for _ in range(10):
            pub.send(b"between")
        eventually(lambda: not b.incoming())
        early = [read_all(sub) for sub in subs]
        a.restart()
        eventually(lambda: len(b.incoming()) == 2)
        seq = pub.send(b"after %d" % round)
        for sub, got in zip(subs, early, strict=True):
            got += take(sub, b"after %d" % round)
            assert numbers(got) == list(range(first, seq + 1))
            assert {msg.lost for msg in got} == {0}


def test_the_publishers_daemon_before_anybody_notices(make_mesh, eventually, take):
    a, b = make_mesh(2)
    pub = a.session.publisher("steady", depth=1024)
    eventually(lambda: b.knows("steady"))
    subs = [b.session.subscribe("steady"), b.session.subscribe("steady", reliable=True)]
    for round in range(3):
        first = pub.send(b"before %d" % round)
        for sub in subs:
            assert numbers(take(sub, b"before %d" % round)) == [first]
        a.kill()
        a.restart()
        eventually(lambda: a.session.connected and a.here() == {"a", "b"})
        eventually(lambda: len([row for row in a.session.channels() if row.direction == "out"]) == 2)
        pub.send(b"after %d" % round)
        for sub in subs:
            got = take(sub, b"after %d" % round)
            assert [(msg.seq, msg.lost) for msg in got] == [(first + 1, 0)]


def test_the_publisher_goes_on_while_its_daemon_is_away(make_mesh, eventually, take):
    a, b = make_mesh(2)
    pub = a.session.publisher("steady", depth=1024)
    eventually(lambda: b.knows("steady"))
    sub = b.session.subscribe("steady")
    pub.send(b"begin")
    take(sub, b"begin")
    a.kill()
    eventually(lambda: not b.incoming())
    seq = [pub.send(b"unheard") for _ in range(5)][-1]
    a.restart()
    eventually(lambda: len(b.incoming()) == 1)
    pub.send(b"heard")
    got = take(sub, b"heard")
    assert [(msg.seq, msg.lost) for msg in got] == [(i, 0) for i in range(1, seq + 2)]


def test_both_at_once(make_mesh, eventually, take):
    a, b = make_mesh(2)
    pub = a.session.publisher("steady", depth=1024)
    eventually(lambda: b.knows("steady"))
    sub = b.session.subscribe("steady")
    pub.send(b"begin")
    take(sub, b"begin")
    a.kill()
    b.kill()
    pub.send(b"between")
    b.restart()
    a.restart()
    eventually(lambda: len(b.incoming()) == 1)
    pub.send(b"after")
    assert numbers(take(sub, b"after")) == [1, 2]


def test_a_third_node_notices_nothing(make_mesh, eventually, take):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("steady", depth=1024)
    eventually(lambda: b.knows("steady") and c.knows("steady"))
    b.session.subscribe("steady", reliable=True)
    sub = c.session.subscribe("steady", reliable=True)
    for i in range(50):
        pub.send(b"%d" % i)
    b.kill()
    for i in range(50, 100):
        pub.send(b"%d" % i)
    eventually(lambda: c.here() == {"a", "c"})
    pub.send(b"end")
    got = take(sub, b"end")
    assert numbers(got) == list(range(101))
    assert {msg.lost for msg in got} == {0}
    eventually(lambda: {row.node for row in a.session.channels()} == {"c"})


def test_a_backlog_is_read_before_what_follows_it(make_mesh, eventually, take):
    a, b = make_mesh(2)
    pub = a.session.publisher("steady", depth=1024)
    eventually(lambda: b.knows("steady"))
    sub = b.session.subscribe("steady")
    for _ in range(10):
        pub.send(b"unread")
    eventually(lambda: b.incoming()[0].messages == 10)
    a.kill()
    eventually(lambda: not b.incoming())
    a.restart()
    eventually(lambda: len(b.incoming()) == 1)
    pub.send(b"after")
    assert numbers(take(sub, b"after")) == list(range(11))
