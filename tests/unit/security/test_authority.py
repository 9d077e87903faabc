from __future__ import annotations

import pytest

from ringcast.security import certificates, folder
from ringcast.security.authority import Authority, has_authority
from ringcast.security.errors import BadCertificate, BadIdentity
from ringcast.security.identity import Identity


@pytest.fixture
def authority(tmp_path):
    return Authority.init(tmp_path / "base", "", "base")


def joined(authority, name):
    where = authority.folder.parent / name
    authority.equip(where, name)
    for file in (folder.AUTHORITY, folder.REVOKED):
        folder.write(where, file, folder.read(authority.folder, file))
    return where


def test_the_authoritys_node_has_an_identity(authority):
    assert Identity(authority.folder).name == "base"
    assert has_authority(authority.folder)


def test_private_keys_are_their_owners_alone(authority):
    for name in (folder.AUTHORITY_KEY, folder.NODE_KEY):
        assert (authority.folder / name).stat().st_mode & 0o077 == 0
    assert authority.folder.stat().st_mode & 0o077 == 0


def test_a_key_that_others_may_read_is_refused_with_the_remedy(authority):
    (authority.folder / folder.NODE_KEY).chmod(0o640)
    with pytest.raises(BadIdentity, match="chmod 600"):
        Identity(authority.folder)


def test_a_second_authority_does_not_replace_the_first(authority):
    with pytest.raises(BadIdentity, match="there is an identity already"):
        Authority.init(authority.folder, "", "base")


def test_what_is_no_name_leaves_nothing_behind(tmp_path):
    with pytest.raises(BadCertificate, match="is not the name of a node"):
        Authority.init(tmp_path / "base", "", "a/b")
    assert not (tmp_path / "base").exists()


def test_a_name_is_certified_once(authority):
    joined(authority, "robot")
    request = certificates.make_request(certificates.make_key(), "robot")
    with pytest.raises(BadCertificate, match="has a certificate already"):
        authority.certify(request, "robot")
    authority.revoke("robot")
    assert authority.certify(request, "robot")


def test_what_was_issued_is_known_after_a_restart(authority):
    joined(authority, "robot")
    assert [one.name for one in Authority(authority.folder).issued()] == ["base", "robot"]


def test_revoking_somebody_unknown_names_those_who_are_known(authority):
    with pytest.raises(BadCertificate, match="those that have one: base"):
        authority.revoke("nobody")


def test_an_identity_learns_of_newer_lists_alone(authority):
    robot, other = Identity(joined(authority, "robot")), joined(authority, "other")
    old = folder.read(authority.folder, folder.REVOKED)
    authority.revoke("other")
    serial = certificates.read(folder.read(other, folder.NODE)).serial_number
    assert not robot.is_revoked(serial)
    assert robot.learn(folder.read(authority.folder, folder.REVOKED))
    assert robot.is_revoked(serial)
    assert not robot.learn(old)
    assert robot.is_revoked(serial)
    assert Identity(robot.folder).is_revoked(serial)


def test_where_no_authority_is_says_where_to_go(tmp_path):
    with pytest.raises(BadIdentity, match="run this where 'ringcast secure init' was run"):
        Authority(tmp_path)
