"""The page's board, chat and game do what Python's do."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conference_model import drawing, writing
from conference_model.playing import Game, target

import ringcast.conference
from ringcast.conference import presence
from ringcast.conference.presence import Fire, Start

HERE = Path(__file__).parent
TOGETHER_JS = Path(ringcast.conference.__file__).parent / "page" / "together.js"
HERE_WORD = '{"do":"here","id":1,"name":"Ada","publishes":["audio"],"subscribes":[]}'
VALUES = [
    ("control", HERE_WORD), ("control", HERE_WORD.replace("audio", "smell")),
    ("control", '{"do":"gone","id":4294967296}'),
    ("control", '{"do":"gone","id":1}'), ("control", "[]"), ("control", "null"), ("control", "{"),
    ("line", '{"id":1,"n":0,"at":5,"name":"Ada","text":"x"}'), ("line", '{"id":1,"n":0,"at":5,"name":"Ada","text":""}'),
    ("line", json.dumps({"id": 1, "n": 0, "at": 5, "name": "Ada", "text": "x" * 2001})),
    ("drawing", '{"do":"drawn","id":1,"n":0,"at":1,"shape":"box","points":[[0,0],[10000,10000]]}'),
    ("drawing", '{"do":"drawn","id":1,"n":0,"at":1,"shape":"box","points":[[0,0],[10001,0]]}'),
    ("drawing", '{"do":"drawn","id":1,"n":0,"at":1,"shape":"star","points":[[0,0]]}'),
    ("drawing", '{"do":"drawn","id":1,"n":0,"at":1,"shape":"box","points":[]}'),
    ("drawing", '{"do":"drawn","id":1,"n":0,"at":1,"shape":"box","points":[[0,0]],"colour":"red"}'),
    ("drawing", '{"do":"undone","id":1,"n":0,"at":1,"of":3}'), ("drawing", '{"do":"undone","id":1,"n":0,"at":1}'),
]  # fmt: skip
READERS = {"drawing": drawing.read_untrusted, "line": writing.read_untrusted, "control": presence.read_untrusted}


def _refused(reader: str, text: str) -> bool:
    try:
        READERS[reader](text.encode())
    except writing.BadValue:
        return True
    return False


def test_both_languages_agree() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip(
            "node is not installed: the page's board and game are not checked against Python's (apt install nodejs)"
        )
    rng = random.Random(7)
    actions: list[Any] = [
        {
            "do": "drawn",
            "id": rng.randint(1, 3),
            "n": n,
            "at": rng.randint(0, 50),
            "shape": "line",
            "points": [[n, 1], [2, 3]],
        }
        for n in range(40)
    ]
    actions += [{"do": "undone", "id": rng.randint(1, 3), "n": 100 + n, "at": 60, "of": n} for n in range(0, 40, 3)]
    lines = [
        {"id": rng.randint(1, 3), "n": rng.randint(0, 20), "at": n, "name": "x", "text": str(n)} for n in range(30)
    ]
    start = Start(id=1, game=7, seed=99, at=0, seconds=30, shots=20)
    shots: list[Any] = []
    for n in range(25):
        ms = rng.randint(0, 30_500)
        spot = target(99, 0, ms) if n % 2 else target(99, 1, ms)
        shots.append([spot.x, spot.y, {"do": "fire", "id": rng.randint(1, 3), "game": 7, "n": n}, ms])
    targets = [[rng.getrandbits(32), rng.randint(0, 20), rng.randint(0, 60_000)] for _ in range(200)]
    cases = {
        "actions": actions, "lines": lines, "start": msgspec.to_builtins(start), "shots": shots, "targets": targets,
        "values": VALUES,
    }  # fmt: skip
    done = subprocess.run(
        [node, str(HERE / "together_vectors.mjs"), str(TOGETHER_JS)],
        input=json.dumps(cases), capture_output=True, text=True, check=True,
    )  # fmt: skip

    board, chat, game = drawing.Board(), writing.Chat(), Game(start)
    for action in actions:
        board.take(drawing.read_untrusted(json.dumps(action).encode()))
    states = []
    for x, y, shot, ms in shots:
        game.aim(x, y)
        game.fire(msgspec.convert(shot, Fire), ms)
        states.append(msgspec.to_builtins(game.state(ms)))
    assert game.score > 1
    assert json.loads(done.stdout) == {
        "targets": [list(target(*one)) for one in targets],
        "things": [[thing.id, thing.n] for thing in board.things()],
        "undoable": board.undoable(1),
        "taken": [chat.take(msgspec.convert(line, writing.Line)) for line in lines],
        "lines": [line.text for line in chat.lines()],
        "states": states,
        "refused": [_refused(reader, text) for reader, text in VALUES],
    }
