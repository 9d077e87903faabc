"""Which rule allows what to whom."""

from __future__ import annotations

import pytest

from ringcast.security.rules import Rule, Rules, Who, missing, subject

OWN = 1000
ANA = Who(1001, frozenset({1001, 50}), "/usr/bin/sensor", "ana")
BEN = Who(1002, frozenset({1002}), "/usr/bin/python3", "ben")


def rules(*made: Rule) -> Rules:
    return Rules(made, own=OWN)


def test_the_daemons_user_and_root_may_do_everything_and_others_nothing() -> None:
    nothing = rules()
    for who in (Who(OWN), Who(0)):
        assert nothing.allows(who, "destroy", "**")
        assert nothing.is_known(who)
    assert not nothing.allows(ANA, "subscribe", "lab/a")
    assert not nothing.is_known(ANA)
    assert not nothing.shared


def test_a_rule_is_for_its_actions_and_tags_only() -> None:
    some = rules(Rule(users=(ANA.uid,), may=("subscribe", "pull"), tags=("lab/**",)))
    assert some.allows(ANA, "subscribe", "lab/a")
    assert some.allows(ANA, "pull", "lab")
    assert not some.allows(ANA, "publish", "lab/a")
    assert not some.allows(ANA, "subscribe", "other")
    assert not some.allows(BEN, "subscribe", "lab/a")
    assert some.shared


def test_all_that_a_rule_says_of_a_program_has_to_fit() -> None:
    some = rules(
        Rule(groups=(50,), programs=("/usr/bin/sensor",), may=("publish",), tags=("a",)),
        Rule(users=(), may=("pull",), tags=("b",)),
    )
    assert some.allows(ANA, "publish", "a")
    assert not some.allows(ANA._replace(program="/usr/bin/python3"), "publish", "a")
    assert not some.allows(ANA._replace(gids=frozenset({1001})), "publish", "a")
    assert not some.allows(ANA._replace(program=""), "publish", "a")
    assert some.allows(BEN, "pull", "b")


def test_a_wildcard_needs_a_rule_that_covers_it() -> None:
    some = rules(Rule(users=(ANA.uid,), may=("subscribe",), tags=("lab/*", "lab/x/*")))
    assert some.allows(ANA, "subscribe", "lab/*")
    assert not some.allows(ANA, "subscribe", "lab/**")
    assert not some.allows(ANA, "subscribe", "**")
    assert not rules(Rule(users=(), may=("subscribe",), tags=("**",))).allows(ANA, "subscribe", "@ringcast/n/audit")


def test_while_no_rule_names_a_node_nodes_may_do_everything() -> None:
    assert rules(Rule(users=(), may=("pull",), tags=("a",))).allows_node("edge", "publish", "b")
    some = rules(
        Rule(nodes=("edge",), may=("publish",), tags=("edge/**",)), Rule(nodes=("*",), may=("subscribe",), tags=("a",))
    )
    assert some.allows_node("edge", "publish", "edge/x")
    assert not some.allows_node("edge", "publish", "a")
    assert not some.allows_node("other", "publish", "edge/x")
    assert some.allows_node("other", "subscribe", "a")
    assert not some.shared


def test_a_token_is_allowed_what_its_rules_say() -> None:
    some = rules(Rule(tokens=("page",), may=("subscribe",), tags=("a",)))
    assert some.allows_token("page", "subscribe", "a")
    assert not some.allows_token("page", "publish", "a")
    assert not some.allows_token("", "subscribe", "a")
    assert not some.allows(ANA, "subscribe", "a")


@pytest.mark.parametrize(
    ("action", "tag", "needed"),
    [
        ("create", "@view/0123/lab/a", ("subscribe", "lab/a")),
        ("pull", "@view/0123/lab/a", ("subscribe", "lab/a")),
        ("publish", "@view/0123/lab/a", ("publish", "@view/0123/lab/a")),
        ("subscribe", "@view/0123", ("subscribe", "@view/0123")),
        ("subscribe", "lab/a", ("subscribe", "lab/a")),
    ],
)
def test_a_view_is_its_tags(action: str, tag: str, needed: tuple[str, str]) -> None:
    assert subject(action, tag) == needed


def test_the_rule_to_add_is_named() -> None:
    assert missing("user", "ana", "pull", "a/b") == '[[rules]] user = "ana", may = ["pull"], tags = ["a/b"]'
