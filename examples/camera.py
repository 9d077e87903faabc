"""One camera, and each viewer gets it at its own rate and size: small ones cost small messages, scaled once for all."""

import numpy as np

import ringcast

with ringcast.connect() as session:
    camera = session.tag("example/camera", codec="image", depth=16, capacity_bytes=8 << 20)
    pub = camera.publisher()

    # A third of the frames, as thumbnails made in the publisher's own process. `rate_hz=10` would choose the factor.
    thumbnails = camera.subscribe(size=(80, 60), every=3)
    # Half the width and height, made here; on another node, `at="node:NAME"` has a node in between do it.
    screen = camera.subscribe(size=(320, 240), at="subscriber")

    rng = np.random.default_rng(1)
    frames = [rng.integers(0, 256, (480, 640, 3), np.uint8) for _ in range(12)]
    for frame in frames:
        pub.send(frame)

    small = [thumbnails.recv(timeout=30) for _ in range(4)]
    print(f"thumbnails: {len(small)} of {len(frames)}, each {small[0].data.shape}, numbers {[m.seq for m in small]}, "
          f"lost {sum(m.lost for m in small)}")  # fmt: skip

    msg = screen.recv(timeout=30)
    same = abs(float(msg.data.mean()) - float(frames[msg.seq].mean())) < 0.5
    print(f"the screen has {msg.data.shape}, and its mean is {'' if same else 'not '}the camera's")

    # History, too.
    latest = camera.history(size=(40, 30)).latest()
    print(f"pulled: number {latest.seq} at {latest.data.shape}")
