"""docs/from-the-papers.md has every call of the paper's Figure 5, and names calls and parameters of ours that exist."""

from __future__ import annotations

import inspect
import re

import pytest
from markdown_pages import ROOT

import ringcast
from ringcast.client.remote_history import RemoteHistory
from ringcast.model import options
from ringcast.transport import find

FIGURE_5 = [
    "ClientAPI_Init",
    "UnRegister",
    "Create_DistTag",
    "Destroy_DistTag",
    "Set_Tag_Attributes",
    "Set_Pull_Attributes",
    "Get_Send_Access",
    "Release_Send_Access",
    "Subscribe",
    "Unsubscribe",
    "Send_Message",
    "Recv_Message",
    "Pull_Message",
    "Recv_Message_From",
    "Get_Tag_List",
    "Get_Local_Tag_List",
    "Get_Publisher_List",
    "Get_TagID",
]
CLASSES = {
    "ringcast": ringcast, "session": ringcast.Session, "tag": ringcast.Tag, "pub": ringcast.Publisher,
    "sub": ringcast.Subscriber, "history": ringcast.History, "msg": ringcast.Message,
}  # fmt: skip
PAGE = (ROOT / "docs" / "from-the-papers.md").read_text()
CALLS = sorted(set(re.findall(rf"\b({'|'.join(CLASSES)})\.(\w+)(?:\(([^)`]*)\))?", PAGE)))


def test_the_table_has_every_call_of_the_paper() -> None:
    assert set(FIGURE_5) == set(re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE))


@pytest.mark.parametrize(("owner", "name", "arguments"), CALLS)
def test_ours_are_there(owner: str, name: str, arguments: str) -> None:
    thing = getattr(CLASSES[owner], name)
    named = set(re.findall(r"(\w+)=", arguments))
    if named:
        assert named <= parameters(thing), f"{owner}.{name}"


def parameters(thing: object) -> set[str]:
    """Of a function, with the keys of its options; of a native one, what its docstring says."""
    try:
        found = inspect.signature(thing).parameters  # type: ignore[arg-type]
        packed = re.findall(r"Unpack\[(\w+)\]", " ".join(str(parameter.annotation) for parameter in found.values()))
        return set(found).union(*(getattr(options, name).__optional_keys__ for name in packed))
    except ValueError:
        return set(re.findall(r"(\w+)(?=[:=,)])", thing.__doc__ or ""))


def test_transports_are_there() -> None:
    table = PAGE[PAGE.index("The transport protocols") :]
    named = re.findall(r"`((?:udp|tcp|multicast|nak|lateral)[\w+:=,]*)`", table)
    assert len(named) >= 6
    for text in named:
        find(text)


def test_both_histories_have_the_same_calls() -> None:
    for name in ("latest", "at", "range", "since", "before", "between", "bounds"):
        assert hasattr(ringcast.History, name)
        assert hasattr(RemoteHistory, name)
