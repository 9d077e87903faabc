"""Large messages: NumPy arrays, received without a copy, and written in place."""

import numpy as np

import ringcast

with ringcast.connect() as session:
    tag = session.tag("example/frames", codec="numpy", schema={"dtype": "uint8", "shape": [1080, 1920, 3]},
                      depth=4, capacity_bytes=32 << 20)  # fmt: skip
    pub, sub = tag.publisher(), tag.subscribe()

    frame = np.zeros((1080, 1920, 3), np.uint8)
    for shade in (10, 20, 30):
        frame[:] = shade
        pub.send(frame)

    for _ in range(3):
        msg = sub.recv(timeout=5, copy=False)  # the array lies in the publisher's ring
        mean = msg.data.mean()
        print(f"frame {msg.seq}: {msg.data.shape}, mean {mean}, still valid after use: {msg.valid}")

    # Without a codec the bytes can be made where they will be read from.
    raw = session.tag("example/raw-frames", capacity_bytes=32 << 20)
    raw_pub, raw_sub = raw.publisher(), raw.subscribe()
    with raw_pub.reserve(frame.nbytes) as room:
        np.frombuffer(room, np.uint8)[:] = 40
    print("in place:", len(raw_sub.recv(timeout=5).data), "bytes")
