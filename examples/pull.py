"""Pull: nothing is sent to a history; it looks into the publishers' rings."""

import ringcast

with ringcast.connect() as session:
    tag = session.tag("example/samples", codec="json", depth=100)
    with tag.publisher() as pub:
        for i in range(250):
            pub.send({"sample": i, "square": i * i})

    # The publisher has left; what it wrote is still there.
    history = tag.history()
    print("newest:", history.latest().data)
    print("three before it:", history.latest(back=3).data)
    print("held:", history.bounds())
    print("number 200:", history.at(200).data)
    print("from 247 on:", [msg.data["sample"] for msg in history.since(247)])
    try:
        history.at(10)
    except ringcast.Overwritten as exc:
        print("number 10:", exc)
    tag.destroy()
