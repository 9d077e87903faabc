"""Every example runs by itself to its end, and says what its text promises."""

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[4] / "examples"

SAYS = {
    "first_program.py": ["latest: 21.6"],
    "pull.py": ["three before it: {'sample': 246", "held: (150, 249)", "from 247 on: [247, 248, 249]"],
    "wildcard.py": ["example/room/cellar/climate: ['wet', 12.0]"],
    "reliable.py": ["20000 received, 0 lost"],
    "large_messages.py": ["frame 2: (1080, 1920, 3), mean 30.0, still valid after use: True", "6220800 bytes"],
    "camera.py": [
        "thumbnails: 4 of 12, each (60, 80, 3), numbers [0, 3, 6, 9], lost 0",
        "the screen has (240, 320, 3), and its mean is the camera's",
        "pulled: number 11 at (30, 40, 3)",
    ],
    "test_bench.py": [
        "the engine is running at about 3000 rpm, valve open: True",
        "refused: variable 'engine/valve' is a float, not str",
    ],
    "recording.py": ['100 messages; the last: {"celsius":29.9}', "replayed 100; the last: again/example/climate"],
    "conference.py": [f"{name} heard 2 others, 0 blocks lost" for name in ("Ada", "Bob", "Eve")],
    "asyncio/conversation.py": ["[10, 20] sum to 30"],
    "asyncio/reliable.py": ["daemon: connected", "sum: 1999000 lost: 0", "newest: 1999 three before it: 1996"],
    "notifications.py": [
        "delivered 10",
        "queue: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]",
        "event: True first 0",
        "and newer: 10",
    ],
}


def test_every_example_is_tested():
    assert SAYS.keys() == {
        str(path.relative_to(EXAMPLES)) for folder in (EXAMPLES, EXAMPLES / "asyncio") for path in folder.glob("*.py")
    }


@pytest.mark.parametrize("name", SAYS)
def test_it_runs(name, program):
    output = program((EXAMPLES / name).read_text()).end()
    for line in SAYS[name]:
        assert line in output
