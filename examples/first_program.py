"""The first program: push a few readings, receive them, and look at the last one again."""

import ringcast

with ringcast.connect() as session:  # this node's daemon; one is started when none runs
    tag = session.tag("example/temperature")  # creates the tag, or joins it
    pub = tag.publisher()
    sub = tag.subscribe()

    for reading in (b"21.5", b"21.7", b"21.6"):
        pub.send(reading)

    for _ in range(3):
        msg = sub.recv(timeout=5)
        print(f"#{msg.seq} {msg.data.decode()} degrees, {(msg.received_ns - msg.sent_ns) / 1000:.0f} us on the way")

    print("latest:", tag.history().latest().data.decode())
