"""Outcome → failure → class: total, and P06 (whose affair it is)."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, a_page, a_redirect, an_error, not_modified
from comity.failures import Class, failure_class, failure_of, of_status
from comity.model import Cause, Failed, Failure, Refused, StillFresh


@pytest.mark.parametrize("failure", Failure, ids=str)
def test_every_failure_is_its_own_and_has_a_class(failure: Failure) -> None:
    assert failure_of(Failed(failure)) is failure
    assert failure_class(failure) in get_args(Class)
    if failure.value.startswith("http_") and failure.value[5:].isdigit():
        assert of_status(int(failure.value[5:])) is failure
        assert failure_of(an_error(int(failure.value[5:]))) is failure


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (100, Failure.HTTP_1XX),
        (199, Failure.HTTP_1XX),
        (202, Failure.HTTP_2XX),
        (299, Failure.HTTP_2XX),
        (300, Failure.HTTP_OTHER),
        (419, Failure.HTTP_OTHER),
        (599, Failure.HTTP_OTHER),
        (0, Failure.HTTP_OTHER),
        (-1, Failure.HTTP_OTHER),
        (999, Failure.HTTP_999),
    ],
)
def test_codes_without_a_failure_of_their_own(status: int, failure: Failure) -> None:
    assert of_status(status) is failure


@settings(deadline=None)
@given(st.integers())
def test_every_number_is_a_failure(status: int) -> None:
    assert of_status(status).value.startswith("http_")


def test_what_is_no_failure() -> None:
    for outcome in (
        a_page(),
        a_page(status=202),
        not_modified(),
        StillFresh(NOW),
        a_redirect(),
        Refused(Cause.SCOPE, "x"),
    ):
        assert failure_of(outcome) is None


def test_redirects_that_lead_nowhere() -> None:
    assert failure_of(a_redirect(None, None)) is Failure.REDIRECT_WITHOUT_LOCATION
    assert failure_of(a_redirect("mailto:x", None)) is Failure.REDIRECT_BAD_LOCATION


CLASSES: dict[Class, set[str]] = {
    "host": {
        "dns refused tls reset timeout_connect timeout_read timeout_total protocol cut_off http_429 http_999",
        "http_500 http_501 http_502 http_503 http_504 http_505 http_506 http_507 http_508 http_510 http_511",
        "http_520 http_521 http_522 http_523 http_524 http_525 http_526 http_530",
    },
    "network": {"dns_temporary timeout_dns unreachable"},
    "self": {"self forbidden_address forbidden_port"},
    "proxy": {"proxy"},
}


def test_p06_classes() -> None:
    for group, words in CLASSES.items():
        named = {word for line in words for word in line.split()}
        assert {failure.value for failure in Failure if failure_class(failure) == group} == named
