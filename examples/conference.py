"""A conference of three programs: each speaks for two seconds with a tone of its own, and says what it heard.

Run it with `python examples/conference.py`. People join the same conference with `ringcast conference`.
"""

from __future__ import annotations

import threading

import ringcast
from ringcast.conference.headless import Account, Participant, Plan

TONES = {"Ada": 500, "Bob": 900, "Eve": 1300}


def speak(name: str, together: threading.Barrier, heard: list[Account]) -> None:
    def ready() -> float:
        together.wait()
        return 0.0  # at once

    with ringcast.connect(program=name) as session:
        plan = Plan(conference="example", name=name, audio=f"tone:{TONES[name]}", seconds=2)
        heard.append(Participant(session, plan).run(ready))


def main() -> None:
    heard: list[Account] = []
    together = threading.Barrier(len(TONES))
    people = [threading.Thread(target=speak, args=(name, together, heard)) for name in TONES]
    for person in people:
        person.start()
    for person in people:
        person.join()
    for account in sorted(heard, key=lambda account: account.name):
        print(f"{account.name} heard {len(account.received)} others, {account.lost} blocks lost")


if __name__ == "__main__":
    main()
