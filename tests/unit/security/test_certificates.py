from __future__ import annotations

from datetime import timedelta

import pytest

from ringcast.security import certificates
from ringcast.security.errors import BadCertificate

NOW = certificates.utc_now()
KEY = certificates.make_key()
AUTHORITY = certificates.make_authority(KEY, "test", NOW)
OTHER_KEY = certificates.make_key()
OTHER = certificates.make_authority(OTHER_KEY, "other", NOW)


def certified(name="robot", **how):
    return certificates.certify(
        AUTHORITY, KEY, certificates.make_request(certificates.make_key(), name), name, NOW, **how
    )


def test_a_certificate_is_for_the_name_that_was_granted():
    request = certificates.make_request(certificates.make_key(), "somebody-else")
    made = certificates.certify(AUTHORITY, KEY, request, "robot", NOW)
    assert certificates.name_of(made) == "robot"
    certificates.check(made, AUTHORITY, NOW)


def test_another_authoritys_certificate_is_refused():
    with pytest.raises(BadCertificate, match="not signed by this mesh's authority"):
        certificates.check(certified(), OTHER, NOW)


@pytest.mark.parametrize("when", [NOW - timedelta(days=1), NOW + timedelta(days=2)])
def test_outside_its_time_it_is_refused(when):
    with pytest.raises(BadCertificate, match="the certificate is valid from"):
        certificates.check(certified(days=1), AUTHORITY, when)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "../etc", "nul\0"])
def test_what_is_no_name_is_not_certified(name):
    with pytest.raises(BadCertificate, match="is not the name of a node"):
        certificates.certify(AUTHORITY, KEY, certificates.make_request(KEY, "fine"), name, NOW)


def test_a_request_that_was_changed_is_refused():
    request = bytearray(certificates.make_request(certificates.make_key(), "robot"))
    at = len(request) // 2
    request[at] = ord("A") if request[at] != ord("A") else ord("B")
    with pytest.raises(BadCertificate):
        certificates.certify(AUTHORITY, KEY, bytes(request), "robot", NOW)


def test_the_authoritys_own_certificate_names_no_node():
    with pytest.raises(BadCertificate, match="names no node"):
        certificates.name_of(AUTHORITY)


def test_what_was_revoked_is_read_back():
    robot = certified()
    made = certificates.make_revocations(AUTHORITY, KEY, {robot.serial_number: NOW}, 7, NOW)
    assert certificates.read_revocations(certificates.pem_of(made), AUTHORITY) == (7, {robot.serial_number})


def test_a_list_that_another_signed_is_refused():
    made = certificates.make_revocations(AUTHORITY, OTHER_KEY, {}, 8, NOW)
    with pytest.raises(BadCertificate, match="no list of revoked certificates of this mesh's"):
        certificates.read_revocations(certificates.pem_of(made), AUTHORITY)
