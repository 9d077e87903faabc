"""A small test bench: an engine that owns its variables, and a controller that reads them and writes set points.

The engine runs warm and slow with its valve shut. The controller asks for the speed on change, with a dead band, and
asks the engine to open the valve until the speed is right. In a real bench both are programs of their own, on nodes of
their own; nothing else would change.
"""

import threading
import time

import ringcast

WANTED_RPM = 3000.0


def engine(ready: threading.Event, done: threading.Event) -> None:
    with ringcast.connect() as session, session.variables("example/bench", period_s=0.01, frame_s=0.5) as bench:
        bench.add_many({"engine/rpm": 800.0, "engine/temperature": 90.0, "engine/valve": 0.0, "engine/state": "idle"})
        ready.set()
        while not done.wait(0.01):
            target = 800.0 + 4000.0 * bench["engine/valve"]
            bench["engine/rpm"] += 0.1 * (target - bench["engine/rpm"])
            bench["engine/temperature"] += 0.01 * (bench["engine/rpm"] / 40.0 - bench["engine/temperature"])
            bench["engine/state"] = "idle" if bench["engine/rpm"] < 1000.0 else "running"


def controller() -> None:
    with ringcast.connect() as session, session.variables("example/bench") as bench:
        speed = bench.subscribe("engine/rpm", policy=ringcast.OnChange(dead_band=5.0, longest_s=0.2))
        changes = speed.queue()
        end = time.monotonic() + 20.0
        while time.monotonic() < end:
            (rpm,) = changes.get(timeout=10).numbers[-1:]
            if abs(rpm - WANTED_RPM) < 50.0:
                break
            opening = min(1.0, max(0.0, bench.ask("engine/valve")["engine/valve"] + (WANTED_RPM - rpm) / 40_000.0))
            bench["engine/valve"] = opening  # not ours: a request to its owner
        state = bench["engine/state"]
        print(f"the engine is {state} at about {round(rpm / 100.0) * 100} rpm, valve open: {opening > 0.1}")
        try:
            bench["engine/valve"] = "wide"
        except TypeError as refusal:
            print("refused:", refusal)


ready, done = threading.Event(), threading.Event()
running = threading.Thread(target=engine, args=(ready, done))
running.start()
ready.wait(10)
try:
    controller()
finally:
    done.set()
    running.join()
