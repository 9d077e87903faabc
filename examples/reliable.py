"""A reliable reader is waited for, up to the tag's bound; the others never slow anybody."""

import threading

import ringcast

COUNT = 20_000

with ringcast.connect() as session:
    # A ring of 64 messages: without waiting, most of them would be overwritten before they are read.
    tag = session.tag("example/ledger", depth=64, max_wait_s=5.0)
    pub = tag.publisher()
    exact, casual = tag.subscribe(reliable=True), tag.subscribe()

    def send() -> None:
        for i in range(COUNT):
            pub.send(i.to_bytes(8, "little"))

    sender = threading.Thread(target=send)
    sender.start()
    total = sum(int.from_bytes(exact.recv(timeout=10).data, "little") for _ in range(COUNT))
    sender.join()

    print("reliable reader:", exact.stats().received, "received,", exact.stats().lost, "lost, sum", total)
    first = casual.recv(timeout=5)
    print("the other reader looked late and knows what it missed:", first.lost, "lost")
    assert total == COUNT * (COUNT - 1) // 2
