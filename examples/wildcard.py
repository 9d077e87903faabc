"""A wildcard follows publishers as they come and go, whatever codec their tags have."""

import ringcast

with ringcast.connect() as session:
    sub = session.subscribe("example/room/*/climate")

    kitchen = session.publisher("example/room/kitchen/climate", codec="json")
    kitchen.send({"celsius": 22.5})

    with session.publisher("example/room/cellar/climate", codec="msgpack") as cellar:
        cellar.send(["wet", 12.0])

    kitchen.send({"celsius": 22.6})

    for _ in range(3):
        msg = sub.recv(timeout=5)
        print(f"{msg.tag}: {msg.data}")
