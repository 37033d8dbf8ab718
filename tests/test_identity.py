"""Who asks: the User-Agent, the contact, and the order in which a contact is looked for (ID-1, ROB-10, P13)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from comity import __version__
from comity.identity import VARIABLE, BadIdentity, NoContact, contact_of, find, identity, memory_path, remembered


def a_person(*answers: str) -> Callable[[str], str]:
    """Answers questions in turn, then closes the terminal."""
    left = list(answers)

    def ask(question: str) -> str:
        if not left:
            raise EOFError
        return left.pop(0)

    return ask


def look(environment: Mapping[str, str] | None = None, **options: Any) -> Any:
    return find(**{"environment": environment or {}, "memory": None, "local": False} | options)


# ----------------------------------------------------------------------------------------------------------- user agent


def test_the_user_agent_names_product_version_and_contact() -> None:
    assert identity(contact="https://a.example/bot").user_agent == f"comity/{__version__} (+https://a.example/bot)"
    own = identity(product="acme-news", version="2.1", contact="ops@a.example", mail="ops@a.example")
    assert (own.user_agent, own.token, own.mail) == ("acme-news/2.1 (+ops@a.example)", "acme-news", "ops@a.example")


def test_the_token_is_a_part_of_the_user_agent() -> None:
    """ROB-10, R9."""
    who = identity(product="Acme_Bot")
    assert who.token in who.user_agent


@pytest.mark.parametrize(
    "product", ["", "acme bot", "acme/1", "acme2", "búa", "acme.bot", "*", "acme\n", "Mozilla", "googlebot", "curl"]
)
def test_a_token_robots_txt_cannot_name_or_that_is_anothers_is_refused(product: str) -> None:
    """ROB-10, ID-1."""
    with pytest.raises(BadIdentity, match=r"identity\.product"):
        identity(product=product)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"version": "1 beta"}, "identity.version"),
        ({"version": "1)(x"}, "identity.version"),
        ({"mail": "not a mail"}, "identity.from"),
        ({"mail": "a@a.example\r\nX: y"}, "identity.from"),
        ({"contact": "me"}, "contact: 'me' is neither"),
    ],
)
def test_what_cannot_be_sent_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadIdentity, match=message):
        identity(**options)


# -------------------------------------------------------------------------------------------------------------- contact


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("https://a.example/bot", "https://a.example/bot"),
        ("  HTTPS://A.example/Bot ", "https://a.example/Bot"),
        ("http://a.example", "http://a.example/"),
        ("https://ví-dụ.example/", "https://xn--v-d-rma6749a.example/"),
        ("https://a.example/b(1)", "https://a.example/b%281%29"),
        ("me@a.example", "me@a.example"),
        ("mailto:me+crawl@mail.a.example", "me+crawl@mail.a.example"),
    ],
)
def test_a_contact_is_a_url_or_a_mail_address(given: str, sent: str) -> None:
    assert contact_of(given) == sent
    assert contact_of(sent) == sent


@pytest.mark.parametrize(
    "given",
    [
        "",
        "me",
        "me@",
        "me@host",
        "a.example",
        "ftp://a.example/",
        "https://",
        "http://localhost/bot",
        "http://127.0.0.1:8000/",
        "https://intranet/bot",
        "https://me:secret@a.example/",
        "me@a.example, you@a.example",
        "https://a.example/\r\nX-Evil: 1\x00",
        "me@a.example\nX: y",
        "tel:+1555",
    ],
)
def test_what_reaches_nobody_is_no_contact(given: str) -> None:
    try:
        sent = contact_of(given)
    except BadIdentity:
        return
    assert all(" " < character < "\x7f" and character not in "()" for character in sent)
    assert given.startswith("https://a.example/")  # control characters are dropped or escaped as browsers do


# ---------------------------------------------------------------------------------------------------------------- order

FLAG, ENV, SETTINGS, MEMORY = (f"{name}@a.example" for name in ("flag", "env", "settings", "memory"))


@pytest.mark.parametrize("first", range(5))
def test_the_order_is_flag_environment_settings_memory_question(tmp_path: Path, first: int) -> None:
    memory = tmp_path / "identity.toml"
    if first <= 3:
        memory.write_text(f'contact = "{MEMORY}"\n')
    who = look(
        {VARIABLE: ENV} if first <= 1 else {VARIABLE: " "},
        flag=FLAG if first <= 0 else None,
        configured=SETTINGS if first <= 2 else None,
        memory=memory,
        ask=a_person("answer@a.example"),
    )
    assert who.contact == [FLAG, ENV, SETTINGS, MEMORY, "answer@a.example"][first]
    assert who.contact_from == ["--contact", VARIABLE, "identity.contact", str(memory), "your answer"][first]


def test_without_a_contact_no_crawl_starts() -> None:
    with pytest.raises(NoContact, match=r"--contact, in COMITY_CONTACT, or as identity\.contact in comity\.toml"):
        look()


def test_crawling_this_machine_itself_needs_no_contact_and_asks_for_none() -> None:
    who = look(local=True, ask=a_person())
    assert who.contact is None
    assert who.contact_from is None
    assert who.user_agent == f"comity/{__version__}"
    assert look(local=True, flag=FLAG).contact == FLAG


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize(
    ("options", "source"),
    [({"flag": "x"}, "--contact"), ({"environment": {VARIABLE: "x"}}, VARIABLE), ({"configured": "x"}, "identity.con")],
)
def test_a_bad_contact_is_told_with_its_source(local: bool, options: dict[str, Any], source: str) -> None:
    with pytest.raises(BadIdentity, match=f"{source}.*: 'x' is neither"):
        look(local=local, **options)


# ------------------------------------------------------------------------------------------------------------- terminal


def test_the_answer_is_remembered(tmp_path: Path) -> None:
    memory, told = tmp_path / "new" / "comity" / "identity.toml", list[str]()
    assert look(memory=memory, ask=a_person("me@a.example"), tell=told.append).contact == "me@a.example"
    assert remembered(memory) == "me@a.example"
    assert os.listdir(memory.parent) == ["identity.toml"]
    assert told[-1] == f"remembered in {memory}"
    assert look(memory=memory).contact == "me@a.example"  # never asked again


def test_a_bad_answer_is_explained_and_asked_again(tmp_path: Path) -> None:
    told = list[str]()
    who = look(ask=a_person("me", "https://a.example/bot"), tell=told.append)
    assert who.contact == "https://a.example/bot"
    assert "neither a URL" in told[-1]


@pytest.mark.parametrize("answers", [(), ("",), ("x", "y", "z", "me@a.example")], ids=["closed", "empty", "three bad"])
def test_no_answer_is_no_contact(answers: tuple[str, ...]) -> None:
    with pytest.raises(NoContact):
        look(ask=a_person(*answers))


def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told = list[str]()
    memory = tmp_path / "file" / "identity.toml"
    assert look(memory=memory.parent / "x" / "y", ask=a_person("me@a.example"), tell=told.append).contact
    assert "could not be remembered" in told[-1]


@pytest.mark.parametrize("text", ["contact = ", "contact = 3", "\xff"], ids=["not TOML", "no text", "not UTF-8"])
def test_a_memory_that_cannot_be_read_is_told(tmp_path: Path, text: str) -> None:
    memory = tmp_path / "identity.toml"
    memory.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadIdentity, match=r"identity\.toml.*mend or remove it"):
        look(memory=memory)


@pytest.mark.parametrize("text", ["", 'contact = ""', "other = 1"])
def test_an_empty_memory_is_none(tmp_path: Path, text: str) -> None:
    memory = tmp_path / "identity.toml"
    memory.write_text(text)
    assert remembered(memory) is None


@pytest.mark.parametrize(
    ("environment", "platform", "folder"),
    [
        ({"XDG_CONFIG_HOME": "/x"}, "linux", "/x"),
        ({"XDG_CONFIG_HOME": "/x"}, "darwin", "/x"),
        ({"XDG_CONFIG_HOME": "relative"}, "linux", "/u/.config"),
        ({"XDG_CONFIG_HOME": ""}, "linux", "/u/.config"),
        ({}, "linux", "/u/.config"),
        ({}, "darwin", "/u/Library/Application Support"),
    ],
)
def test_where_it_is_remembered(environment: dict[str, str], platform: str, folder: str) -> None:
    assert memory_path(environment, Path("/u"), platform) == Path(folder, "comity", "identity.toml")
