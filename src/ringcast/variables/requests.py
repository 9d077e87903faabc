"""What owners of variables are asked: their current values, and to change them. A question and its answer are msgpack.

Only numbers, texts, bytes and arrays travel; an array as its type and its bytes. An owner answers for its own variables
and is silent on others', so that a question is every owner's and one answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringcast.tag import Tag
    from ringcast.variables.mapping import Variables


class Requests:
    def __init__(self, tag: Tag[Any], variables: Variables) -> None:
        self._tag = tag
        self._variables = variables

    def serve(self) -> None:
        pass

    def get(self, names: Sequence[str], timeout: float) -> dict[str, Any]:
        raise NotImplementedError

    def set(self, values: Mapping[str, Any], timeout: float) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass
