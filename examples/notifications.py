"""Notification services: callback, queue, event and blackboard, each on a thread of its own."""

import threading

import ringcast

with ringcast.connect() as session:
    tag = session.tag("example/ticks", codec="json")
    pub = tag.publisher()

    done = threading.Event()
    seen: list[int] = []

    def remember(msg: ringcast.Message) -> None:
        seen.append(msg.data)
        if msg.data == 9:
            done.set()

    callback = tag.subscribe().on_message(remember)  # every message, one after the other
    queue = tag.subscribe().queue(maxsize=4)  # a bounded queue for other threads
    alarm_sub = tag.subscribe()
    alarm = alarm_sub.event()  # something to wait on; receiving stays ours
    board = tag.subscribe().blackboard()  # only the newest counts

    for i in range(10):
        pub.send(i)

    done.wait(5)
    callback.close()
    print("callback:", seen, "delivered", callback.delivered)
    print("queue:", [queue.get(timeout=5).data for _ in range(10)])
    print("event:", alarm.wait(5), "first", alarm_sub.recv(timeout=5).data)
    newest = board.latest
    assert newest is not None
    print("blackboard:", newest.data)

    threading.Timer(0.01, pub.send, args=(10,)).start()
    print("and newer:", board.wait_newer(newest, timeout=5).data)
