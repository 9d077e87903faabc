"""No daemon runs. Programs that start together start one, share it, and leave nothing behind."""

import os
from pathlib import Path

import pytest

import ringcast
from ringcast.control.socket_path import running_pid

CLIENT = """
    import ringcast
    with ringcast.connect() as session:
        print(session.status().pid)
        input()
    """


def test_they_start_one_daemon_which_ends_after_the_last(run_program, tmp_path, gone):
    path = str(tmp_path / "auto" / "d.sock")
    programs = [run_program(CLIENT, path) for _ in range(4)]
    pids = {int(program.line()) for program in programs}
    assert len(pids) == 1
    [pid] = pids
    assert running_pid(path) == pid
    assert pid not in {program.pid for program in programs}
    programs[0].kill()
    for program in programs[1:]:
        program.tell()
        program.end()
    assert gone(pid)
    assert os.listdir(tmp_path / "auto") == []


def test_it_outlives_the_program_that_started_it(run_program, tmp_path, gone):
    path = str(tmp_path / "auto.sock")
    first = run_program(CLIENT, path)
    pid = int(first.line())
    second = run_program(CLIENT, path)
    assert int(second.line()) == pid
    first.kill()
    second.tell()
    second.end()
    assert gone(pid)


def test_a_session_opened_again_and_again_finds_one_each_time(run_program, tmp_path, gone):
    """The daemon may be on its way out whenever somebody comes."""
    again = run_program(
        """
        import ringcast
        for i in range(20):
            with ringcast.connect() as session, session.publisher("a") as pub:
                pub.send(b"")
        with ringcast.connect() as session:
            print(session.status().pid)
        """,
        str(tmp_path / "auto.sock"),
    )
    pid = int(again.line())
    again.end()
    assert gone(pid)


def test_it_opens_no_network_port(run_program, tmp_path, gone):
    program = run_program(CLIENT, str(tmp_path / "auto.sock"))
    pid = int(program.line())
    sockets = {os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink()}
    inodes = {name[len("socket:[") : -1] for name in sockets if name.startswith("socket:")}
    for table in ("tcp", "tcp6", "udp", "udp6"):
        rows = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        assert not inodes & {row.split()[9] for row in rows}
    program.tell()
    program.end()
    assert gone(pid)


def test_nothing_is_started_when_that_is_not_wanted(tmp_path):
    with pytest.raises(ringcast.DaemonUnavailable) as caught:
        ringcast.connect(socket=tmp_path / "none.sock", start=False)
    assert caught.value.socket_path == str(tmp_path / "none.sock")
    assert list(tmp_path.iterdir()) == []


def test_a_place_where_none_can_be_started_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ringcast.DaemonUnavailable):
        ringcast.connect(socket=tmp_path / "file" / "d.sock")
