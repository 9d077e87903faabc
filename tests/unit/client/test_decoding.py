import msgspec
import pytest

from ringcast.client.decoding import Decoders, Undecoded, bind
from ringcast.errors import CodecError, DecodeError
from ringcast.model.tag import TagAttributes


class Point(msgspec.Struct):
    x: int


def test_the_opened_tags_codec_is_used_for_its_tag():
    attributes = TagAttributes(codec="json", schema={"type": "object"})
    decoders = Decoders(("a", attributes, bind(attributes, Point)))
    assert decoders.of("a", attributes)(b'{"x":1}') == Point(1)
    assert decoders.of("b", attributes)(b'{"x":1}') == {"x": 1}


def test_a_tag_made_again_with_another_codec_is_decoded_by_that():
    decoders = Decoders()
    assert decoders.of("a", TagAttributes(codec="json"))(b"1") == 1
    assert decoders.of("a", TagAttributes(codec="msgpack"))(b"\x02") == 2
    assert decoders.of("a", TagAttributes()) is None


def test_a_codec_that_is_not_installed_fails_for_each_message_and_not_before():
    decode = Decoders().of("a", TagAttributes(codec="unheard-of"))
    with pytest.raises(DecodeError, match="unheard-of"):
        decode(b"")
    with pytest.raises(CodecError):
        bind(TagAttributes(codec="unheard-of"))


def test_a_reader_may_decode_nothing():
    assert Undecoded().of("a", TagAttributes(codec="json")) is None
