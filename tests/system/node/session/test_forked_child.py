"""A session belongs to the process that opened it."""

FORK = """
    import os, sys, warnings
    import ringcast
    warnings.simplefilter("ignore", DeprecationWarning)

    session = ringcast.connect()
    tag = session.tag("family")
    pub, sub, history = tag.publisher(), tag.subscribe(), tag.history()
    pub.send(b"before")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        uses = {
            "send": lambda: pub.send(b"no"), "recv": lambda: sub.recv(timeout=0), "latest": history.latest,
            "tag": lambda: session.tag("other"), "status": session.status, "publisher": tag.publisher,
            "subscribe": tag.subscribe, "fileno": sub.fileno, "wait": lambda: pub.wait_for_subscribers(1),
            "callback": lambda: sub.on_message(print), "event": sub.event, "board": sub.blackboard,
        }
        for name, use in uses.items():
            try:
                use()
            except ringcast.ForkedError:
                continue
            print("no ForkedError from", name, flush=True)
        for thing in (pub, sub, history, session):
            thing.close()
        with ringcast.connect() as own:
            own.publisher("child").send(b"mine")
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    print("child", status)
    pub.send(b"after")
    print(sub.recv(timeout=30).data.decode(), sub.recv(timeout=30).data.decode(), session.status().clients)
    """


def test_every_use_in_the_child_is_a_clear_error_and_the_parent_goes_on(program):
    family = program(FORK)
    family.expect("child 0", "before after 1")
    family.end()


def test_a_child_that_outlives_its_parent_keeps_nothing_alive(session, program, eventually):
    """Forked children hold copies of the parent's sockets: the daemon must see the death, not the end of file."""
    parent = program("""
        import os, sys, warnings
        import ringcast
        warnings.simplefilter("ignore", DeprecationWarning)
        session = ringcast.connect()
        pub = session.publisher("orphan")
        pub.send(b"last words")
        child = os.fork()
        if child == 0:
            sys.stdin.readline()
            os._exit(0)
        print(child)
        os.kill(os.getpid(), 9)
        """)
    parent.line()
    tag = session.tag("orphan")
    eventually(lambda: tag.publishers() == [])
    assert tag.history().latest().data == b"last words"
    parent.tell()
