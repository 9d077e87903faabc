"""Publisher and subscriber on one node, the proxy on another: the stream stays where it is, and that is said."""

import logging


def test_the_subscriber_scales_it_and_says_so_once(make_mesh, eventually, caplog):
    a, b = make_mesh(2)
    eventually(lambda: len(a.session.nodes()) == 2)
    pubs = [a.session.publisher("lab/x") for _ in range(2)]
    far = b.session.publisher("lab/y")
    eventually(lambda: a.knows("lab/y"))
    with caplog.at_level(logging.WARNING, "ringcast"):
        sub = a.session.subscribe("lab/x", every=2, at="node:b")
        other = a.session.subscribe("lab/y", every=2, at="node:b")
    (said,) = [record.getMessage() for record in caplog.records]
    assert "both on node 'a'" in said
    assert "does not go to node 'b'" in said
    for number in range(4):
        pubs[0].send(b"%d" % number)
        far.send(b"%d" % number)
    assert [sub.recv(timeout=30).seq for _ in range(2)] == [0, 2]
    assert [other.recv(timeout=30).seq for _ in range(2)] == [0, 2]
    assert not a.incoming(tag="lab/x")
