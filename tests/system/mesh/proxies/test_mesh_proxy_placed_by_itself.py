"""Subscribers leave the place of their proxies to the mesh: it puts them where links carry least, while messages flow.

On one machine every node is one hop from every other, so the best place is known: at the publisher while what is wanted
on a node is together less than the whole stream, else at the subscriber, which then gets the whole stream once.
"""


def placed(node, tag):
    return {key: word.at for key, word in node.session.tags(tag)[0].placed.items()}


def test_many_factors_on_a_node_share_the_whole_stream(make_mesh, eventually, take, flow):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("lab/temp", depth=8192)
    eventually(lambda: b.knows("lab/temp") and c.knows("lab/temp"))
    flow(pub, 0.002, bytes(1000))
    one = c.session.subscribe("lab/temp", every=2)
    factors = (2, 3, 4, 5)
    subs = [b.session.subscribe("lab/temp", every=every) for every in factors]
    eventually(lambda: sorted(placed(a, "lab/temp").values()) == ["publisher"] + ["subscriber"] * 4)
    eventually(lambda: [(row.node, row.every) for row in b.incoming(tag="lab/temp")] == [("a", 1)])
    assert [(row.node, row.every) for row in c.incoming(tag="lab/temp")] == [("a", 2)]
    words = b.session.tags("lab/temp")[0].placed  # every node can say why
    assert all(word.why for word in words.values())
    flow.end(pub, 60)
    for sub, every in zip([one, *subs], (2, *factors), strict=True):
        got = take(sub, b"end")
        numbers = [msg.seq for msg in got]
        assert numbers == list(range(numbers[0], numbers[-1] + 1, every))
        assert sum(msg.lost for msg in got) == 0
