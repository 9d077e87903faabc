"""The same subscriptions in an event loop."""

import asyncio
import select
import threading

import pytest

import ringcast
from ringcast.client import ring_following


@pytest.fixture
def daemon(shared_daemon):
    return shared_daemon


@pytest.fixture(autouse=True, params=["kernel", "bridge"])
def signalled_by(request, monkeypatch):
    monkeypatch.setattr(ring_following, "_KERNEL_SIGNALS", request.param == "kernel")
    return request.param


def test_messages_are_iterated_and_awaited(session, connect):
    async def main():
        sub = session.subscribe("news")
        pub = connect().publisher("news")
        task = asyncio.create_task(collect(sub, 100))
        for i in range(100):
            pub.send(b"%d" % i)
            if i % 10 == 0:
                await asyncio.sleep(0)
        assert await task == [b"%d" % i for i in range(100)]
        pub.send(b"one more")
        assert (await sub.recv_async(timeout=30)).data == b"one more"
        with pytest.raises(TimeoutError):
            await sub.recv_async(timeout=0.001)

    async def collect(sub, n):
        out = []
        async for msg in sub:
            out.append(msg.data)
            if len(out) == n:
                break
        return out

    asyncio.run(main())


def test_a_conversation_within_one_loop(session):
    async def main():
        ask, questions = session.publisher("q"), session.subscribe("q")
        answer, answers = session.publisher("a"), session.subscribe("a")

        async def serve():
            async for msg in questions:
                answer.send(msg.data * 2)

        task = asyncio.create_task(serve())
        for i in range(200):
            ask.send(b"%d" % i)
            assert (await answers.recv_async(timeout=30)).data == b"%d" % i * 2
        questions.close()
        await task

    asyncio.run(main())


def test_many_subscribers_share_a_loop(session, connect):
    async def main():
        subs = [session.subscribe(f"wide/{i}") for i in range(20)] + [session.subscribe("wide/*")]
        pubs = [connect().publisher(f"wide/{i}") for i in range(20)]
        waits = [asyncio.create_task(sub.recv_async(timeout=30)) for sub in subs]
        await asyncio.sleep(0)
        for i, pub in enumerate(pubs):
            pub.send(b"%d" % i)
        got = [msg.data for msg in await asyncio.gather(*waits)]
        assert got[:20] == [b"%d" % i for i in range(20)]
        assert len({(await subs[20].recv_async(timeout=30)).data for _ in range(19)}) == 19

    asyncio.run(main())


def test_a_subscriber_serves_one_loop_after_the_other(session):
    pub, sub = session.publisher("a"), session.subscribe("a")
    for i in range(3):

        async def main(i=i):
            wait = asyncio.create_task(sub.recv_async(timeout=30))
            await asyncio.sleep(0)
            pub.send(b"%d" % i)
            assert (await wait).data == b"%d" % i
            pub.send(b"between")

        asyncio.run(main())
        assert sub.recv(timeout=30).data == b"between"


def test_closing_from_another_thread_ends_the_wait(session):
    async def main():
        sub = session.subscribe("quiet")
        waits = [asyncio.create_task(wait(sub)), asyncio.create_task(loop(sub2 := session.subscribe("quiet")))]
        await asyncio.sleep(0)
        for one in (sub, sub2):
            thread = threading.Thread(target=one.close)
            thread.start()
            await asyncio.to_thread(thread.join)
        assert await asyncio.gather(*waits) == ["closed", "ended"]
        with pytest.raises(ringcast.ClosedError):
            await sub.recv_async()

    async def wait(sub):
        try:
            await sub.recv_async()
        except ringcast.ClosedError:
            return "closed"

    async def loop(sub):
        async for _ in sub:
            pass
        return "ended"

    asyncio.run(main())


def test_a_wait_that_is_cancelled_loses_nothing(session):
    async def main():
        pub, sub = session.publisher("a"), session.subscribe("a")
        for i in range(50):
            wait = asyncio.create_task(sub.recv_async())
            await asyncio.sleep(0)
            if i % 2:
                pub.send(b"%d" % i)
            wait.cancel()
            try:
                assert (await wait).data == b"%d" % i
            except asyncio.CancelledError:
                if i % 2:
                    assert (await sub.recv_async(timeout=30)).data == b"%d" % i

    asyncio.run(main())


def test_two_tasks_on_one_subscriber_are_refused(session):
    async def main():
        sub = session.subscribe("a")
        wait = asyncio.create_task(sub.recv_async())
        await asyncio.sleep(0)
        with pytest.raises(ringcast.BusyError):
            await sub.recv_async()
        sub.close()
        with pytest.raises(ringcast.ClosedError):
            await wait

    asyncio.run(main())


def test_a_destroyed_tag_ends_the_wait(session, connect):
    async def main():
        sub = session.subscribe("a")
        wait = asyncio.create_task(sub.recv_async(timeout=30))
        await asyncio.sleep(0)
        await asyncio.to_thread(connect().tag("a").destroy, force=True)
        with pytest.raises(ringcast.TagDestroyed):
            await wait

    asyncio.run(main())


def test_a_session_is_an_asynchronous_context_too(daemon):
    async def main():
        async with ringcast.connect(socket=daemon.socket_path, start=False) as session:
            session.publisher("a").send(b"")
        assert session.closed

    asyncio.run(main())


def test_a_descriptor_for_poll_and_select(session, connect, eventually):
    sub, other = session.subscribe("a"), session.subscribe("b/*")
    poll = select.poll()
    poll.register(sub, select.POLLIN)
    poll.register(other, select.POLLIN)

    def quiet():  # a descriptor may be readable without need for a moment
        for one in (sub, other):
            with pytest.raises(ringcast.WouldBlock):
                one.recv_nowait()
        return poll.poll(0) == []

    eventually(quiet)
    pub = connect().publisher("a")
    for i in range(100):
        pub.send(b"%d" % i)
        assert [fd for fd, _ in poll.poll(30_000)] == [sub.fileno()]
        assert sub.recv_nowait().data == b"%d" % i
        eventually(quiet)
    connect().publisher("b/1").send(b"")
    assert [fd for fd, _ in poll.poll(30_000)] == [other.fileno()]
    assert sub.fileno() == sub.fileno()


def test_a_descriptor_goes_on_when_rings_become_many_and_few_again(session, connect, eventually):
    sub, other = session.subscribe("a"), connect()
    assert sub.fileno() >= 0
    poll = select.poll()
    poll.register(sub, select.POLLIN)
    publishers = []
    sent = set()
    seen = set()

    def receive_what_is_there():
        while True:
            try:
                seen.add(sub.recv_nowait().data)
            except ringcast.WouldBlock:
                return

    for i in range(20):
        publishers.append(other.publisher("a"))
        eventually(lambda: sub.stats().rings == len(publishers))
        receive_what_is_there()
        for j, publisher in enumerate(publishers):
            sent.add(b"%d of %d" % (j, i))
            publisher.send(b"%d of %d" % (j, i))
            while not sent <= seen:
                assert poll.poll(30_000)
                receive_what_is_there()
    for publisher in publishers[1:]:
        publisher.close()
    publishers[0].send(b"alone")
    while b"alone" not in seen:
        assert poll.poll(30_000)
        receive_what_is_there()


def test_descriptors_go_on_after_a_daemons_restart(daemon, session, connect, eventually):
    sub, other = session.subscribe("a"), connect()
    pub = other.publisher("a")
    sub.fileno()
    daemon.kill()
    eventually(lambda: not session.connected and not other.connected)
    daemon.start()
    eventually(lambda: session.connected and other.connected)
    for i in range(20):
        pub.send(b"%d" % i)
        assert select.select([sub], [], [], 30)[0] == [sub]
        assert sub.recv_nowait().data == b"%d" % i
        with pytest.raises(ringcast.WouldBlock):
            sub.recv_nowait()


def test_who_took_all_that_came_need_not_come_back_for_the_publisher_to_know(session, connect):
    async def main():
        sub = session.subscribe("all-that-came", reliable=True)  # no other test has a reader there
        pub = connect().publisher("all-that-came")
        for i in range(3):
            pub.send(b"%d" % i)
        assert [msg.data for msg in await sub.recv_many_async(10, timeout=30)] == [b"0", b"1", b"2"]
        pub.drain(timeout=0)

    asyncio.run(main())
