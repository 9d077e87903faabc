"""Two programs that know nothing of each other but a tag's name."""


def test_messages_arrive_in_order_with_who_sent_them_and_when(session, program):
    sub = session.subscribe("lab/temperature")
    other = program("""
        import ringcast
        with ringcast.connect(program="thermometer") as session, session.publisher("lab/temperature") as pub:
            for i in range(100):
                assert pub.send(b"%d" % i, event_ns=1000 + i) == i
            print("sent")
            input()
        """)
    got = [sub.recv(timeout=30) for _ in range(100)]
    assert [msg.data for msg in got] == [b"%d" % i for i in range(100)]
    assert [msg.seq for msg in got] == list(range(100))
    assert [msg.event_ns for msg in got] == list(range(1000, 1100))
    assert {(msg.tag, msg.publisher.program, msg.publisher.pid, msg.lost) for msg in got} == {
        ("lab/temperature", "thermometer", other.pid, 0)
    }
    assert all(msg.sent_ns <= msg.received_ns for msg in got)
    other.expect("sent")
    other.tell()
    other.end()


def test_a_question_and_its_answer_go_back_and_forth(session, program):
    answers = session.subscribe("echo/answer")
    other = program("""
        import ringcast
        with ringcast.connect() as session:
            sub, pub = session.subscribe("echo/question"), session.publisher("echo/answer")
            print("ready")
            for msg in sub:
                if msg.data == b"enough":
                    break
                pub.send(msg.data.upper())
        """)
    other.expect("ready")
    pub = session.publisher("echo/question")
    for word in (b"one", b"two", b"three"):
        pub.send(word)
        assert answers.recv(timeout=30).data == word.upper()
    pub.send(b"enough")
    other.end()


def test_several_publishers_on_one_tag_are_told_apart(session, program):
    sub = session.subscribe("many")
    source = """
        import ringcast
        with ringcast.connect() as session, session.publisher("many") as pub:
            for i in range(10):
                pub.send(b"%d" % i)
            print("sent")
            input()
        """
    others = [program(source) for _ in range(3)]
    streams: dict[int, list[int]] = {}
    for _ in range(30):
        msg = sub.recv(timeout=30)
        streams.setdefault(msg.publisher.pid, []).append(msg.seq)
    assert streams == {other.pid: list(range(10)) for other in others}
    assert {row.info.pid for row in session.tag("many").publishers()} == {other.pid for other in others}


def test_large_messages_cross_without_a_copy_on_the_way_in(session, program):
    sub = session.subscribe("frames", capacity_bytes=8 << 20, depth=4)
    other = program("""
        import ringcast
        with ringcast.connect() as session, session.publisher("frames") as pub:
            with pub.reserve(1 << 20) as room:
                room[:] = bytes(range(256)) * 4096
            print("sent")
            input()
        """)
    msg = sub.recv(timeout=30, copy=False)
    assert bytes(msg.data[:256]) == bytes(range(256))
    assert len(msg.data) == 1 << 20
    assert msg.valid
    other.expect("sent")
