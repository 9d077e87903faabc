"""A whole program in an event loop: nothing that waits keeps the loop from going on."""

import asyncio
import threading

import pytest

import ringcast

PATIENCE_S = 30


@pytest.fixture
def run(daemon):
    """Runs a coroutine function with an open session."""

    def run(main):
        async def whole():
            async with asyncio.timeout(PATIENCE_S * 2):
                async with ringcast.connect_async(daemon.socket_path, start=False) as session:
                    await main(session)
            assert session.closed

        asyncio.run(whole())

    return run


def test_the_same_names_do_the_same(run, daemon):
    async def main(session):
        tag = await session.tag("news", codec="json", schema=dict[str, int])
        pub, sub = await tag.publisher(), await tag.subscribe()
        assert await pub.wait_for_subscribers(1, timeout=PATIENCE_S) == 1
        assert [await pub.send({"n": n}) for n in range(3)] == [0, 1, 2]
        assert await pub.send_many([{"n": 3}, {"n": 4}]) == 4
        assert (await sub.recv(timeout=PATIENCE_S)).data == {"n": 0}
        assert [msg.data["n"] for msg in await sub.recv_many(10)] == [1, 2, 3, 4]
        with pytest.raises(TimeoutError):
            await sub.recv(timeout=0.001)
        with pytest.raises(ringcast.WouldBlock):
            sub.recv_nowait()
        assert sub.latest.data == {"n": 4}
        assert (sub.lost, sub.stats().received) == (0, 5)
        assert [row.info for row in await tag.publishers()] == [pub.info]
        assert len(await tag.subscribers()) == 1
        assert [row.name for row in await session.tags("news")] == ["news"]
        assert [node.name for node in await session.nodes()] == [session.node]
        assert (await session.status()).node == session.node
        await sub.close()
        await sub.close()
        assert sub.closed
        with pytest.raises(ringcast.ClosedError):
            await sub.recv()
        await pub.close()
        await tag.destroy()
        with pytest.raises(ringcast.UnknownTag):
            await session.tag("news", create=False)

    run(main)


def test_an_unreadable_message_costs_a_batch_none_of_those_before_it(run, program):
    other = program("""
        import ringcast, ringcast.codec.registry as registry
        registry._BUILT_IN["json"] = "ringcast.codec.raw:BYTES"
        with ringcast.connect() as session, session.publisher("mixed", codec="json") as pub:
            print("there")
            input()
            pub.send_many([b"1", b"2", b"{", b"3"])
            print("sent")
            input()
        """)

    async def main(session):
        sub = await session.subscribe("mixed", codec="json")
        batch = asyncio.create_task(sub.recv_many(10, timeout=PATIENCE_S))
        await asyncio.to_thread(other.expect, "there")
        other.tell()
        await asyncio.to_thread(other.expect, "sent")
        found = [msg.data for msg in await batch]
        while len(found) < 2:  # the first may have come alone
            found += [msg.data for msg in await sub.recv_many(10, timeout=PATIENCE_S)]
        assert found == [1, 2]
        with pytest.raises(ringcast.DecodeError):
            await sub.recv_many(10, timeout=PATIENCE_S)
        assert [msg.data for msg in await sub.recv_many(10, timeout=PATIENCE_S)] == [3]
        with pytest.raises(TimeoutError):
            await sub.recv_many(10, timeout=0.001)

    run(main)


def test_a_session_can_be_awaited_and_closed(daemon):
    async def main():
        session = await ringcast.connect_async(daemon.socket_path, start=False)
        assert session.connected
        await session.close()
        await session.close()
        assert session.closed
        with pytest.raises(ringcast.DaemonUnavailable):
            await ringcast.connect_async(daemon.socket_path + "-none", start=False)

    asyncio.run(main())


def test_pulls(run):
    async def main(session):
        pub = await session.publisher("samples", codec="json")
        tag = await session.tag("samples")
        for n in range(10):
            await pub.send(n)
        for at in (None, "publisher"):
            async with await tag.history(at=at) as history:
                sent = await history.since(0)
                assert [msg.data for msg in sent] == list(range(10))
                assert (await history.latest(back=1)).data == 8
                assert (await history.at(3)).data == 3
                assert [msg.data for msg in await history.range(2, 4)] == [2, 3, 4]
                assert await history.bounds() == (0, 9)
                assert (await history.before(sent[5].sent_ns)).data == 5
                assert [m.data for m in await history.between(sent[2].sent_ns, sent[3].sent_ns)] == [2, 3]
                assert await history.staleness_s() > 0
                assert history.unanswered == ()
            assert history.closed
        async with await tag.history(publisher=pub, depth=2) as history:
            assert await history.bounds() == (8, 9)

    run(main)


def test_a_send_that_waits_for_a_reader_lets_the_loop_go_on(run):
    async def main(session):
        tag = await session.tag("small", depth=4, max_wait_s=PATIENCE_S)
        pub, sub = await tag.publisher(), await tag.subscribe(reliable=True)
        for n in range(4):
            await pub.send(b"%d" % n)
        waiting = [asyncio.create_task(pub.send(b"%d" % n)) for n in range(4, 8)]
        for _ in range(20):  # the loop turns while all of them wait
            await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        with pytest.raises(ringcast.WouldBlock):
            pub.send_nowait(b"not before the others")
        # One task receives what the others wait to send: with a blocked loop this would end in SlowSubscriber.
        assert [(await sub.recv(timeout=PATIENCE_S)).data for _ in range(8)] == [b"%d" % n for n in range(8)]
        assert await asyncio.gather(*waiting) == [4, 5, 6, 7]
        assert await pub.send(b"") == 8

    run(main)


def test_a_cancelled_send_keeps_its_turn(run):
    async def main(session):
        tag = await session.tag("small", depth=2, max_wait_s=PATIENCE_S)
        pub, sub = await tag.publisher(), await tag.subscribe(reliable=True)
        await pub.send(b"0")
        await pub.send(b"1")
        first, second = (asyncio.create_task(pub.send(data)) for data in (b"2", b"3"))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert [(await sub.recv(timeout=PATIENCE_S)).data for _ in range(4)] == [b"0", b"1", b"2", b"3"]
        assert await second == 3

    run(main)


def test_a_reader_that_is_too_slow_is_told_of(run):
    async def main(session):
        tag = await session.tag("small", depth=2, max_wait_s=0.01)
        pub = await tag.publisher()
        async with await tag.subscribe(reliable=True):
            await pub.send(b"0")
            await pub.send(b"1")
            with pytest.raises(ringcast.SlowSubscriber):
                await pub.send(b"2")

    run(main)


def test_drain_waits_in_the_loop(run):
    async def main(session):
        tag = await session.tag("ledger", max_wait_s=5.0)
        pub, sub = await tag.publisher(), await tag.subscribe(reliable=True)
        for n in range(10):
            await pub.send(b"%d" % n)
        with pytest.raises(TimeoutError):
            await pub.drain(timeout=0)
        reader = asyncio.create_task(collect(sub, 10))
        await pub.drain(timeout=PATIENCE_S)
        await session.drain(timeout=PATIENCE_S)
        await sub.close()
        assert len(await reader) == 10

    async def collect(sub, n):
        return [msg.data async for msg in sub]

    run(main)


def test_a_subscription_that_is_cancelled_while_it_is_made_is_given_back(run):
    async def main(session):
        tag, begun, go_on = await session.tag("a"), threading.Event(), threading.Event()
        whole, made = tag.blocking.subscribe, []

        def slow(**options):
            begun.set()
            go_on.wait(PATIENCE_S)
            made.append(whole(**options))
            return made[0]

        tag.blocking.subscribe = slow
        task = asyncio.create_task(tag.subscribe())
        while not begun.is_set():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        while not made or not made[0].closed:
            await asyncio.sleep(0.001)
        assert await tag.subscribers() == []

    run(main)


def test_watching_and_changes_of_the_connection(run, daemon, connect):
    async def main(session):
        changes: asyncio.Queue = asyncio.Queue()
        session.on_connection_change(changes.put_nowait)
        assert (await changes.get()).state == "connected"
        async with await session.watch("a", kinds=("publisher",)) as watch:
            pub = await asyncio.to_thread(connect().publisher, "a")
            came = await watch.recv(timeout=PATIENCE_S)
            assert (came.came, came.publisher) == (True, pub.info)
            await asyncio.to_thread(pub.close)
            async for presence in watch:
                assert not presence.came
                break
        await asyncio.to_thread(daemon.kill)
        assert (await changes.get()).state == "lost"
        await asyncio.to_thread(daemon.start)
        assert (await changes.get()).state == "back"

    run(main)
