from importlib.metadata import EntryPoint, EntryPoints

import pytest

from ringcast.codec import find, installed, registry
from ringcast.errors import CodecError


@pytest.fixture(autouse=True)
def _forget():
    yield
    find.cache_clear()


def install(monkeypatch, name, value):
    points = EntryPoints([EntryPoint(name, value, registry.GROUP)])
    monkeypatch.setattr(registry, "_entry_points", lambda: points)


def test_built_in_kinds_are_known_by_their_names():
    for name in ("bytes", "json", "msgpack", "numpy"):
        assert find(name).name == name
        assert name in installed()


def test_an_unknown_name_lists_those_that_there_are():
    with pytest.raises(CodecError, match="audio, bytes, image, json, msgpack, numpy") as caught:
        find("protobuf")
    assert caught.value.codec == "protobuf"


def test_an_installed_package_adds_a_kind(monkeypatch):
    install(monkeypatch, "mine", "ringcast.codec.raw:BYTES")
    assert find("mine") is find("bytes")
    assert "mine" in installed()


def test_a_package_that_does_not_import_is_named(monkeypatch):
    install(monkeypatch, "broken", "no_such_package_anywhere:CODEC")
    with pytest.raises(CodecError, match="no_such_package_anywhere"):
        find("broken")


def test_a_built_in_name_cannot_be_taken_over(monkeypatch):
    install(monkeypatch, "json", "ringcast.codec.raw:BYTES")
    assert find("json").name == "json"
