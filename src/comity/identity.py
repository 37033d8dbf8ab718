"""Who asks: the product token, the User-Agent, and how the operator can be reached.

Invariant: no request leaves without a User-Agent that names a product token robots.txt can address (ROB-10) and a
contact at which a person can be reached (ID-1); a crawl without a contact does not start. The one exception is a crawl
all of whose seeds are on this machine itself. One identity serves every request of a crawl, robots.txt included.

Why asked once and remembered: people who run a crawl the first time have no settings yet, and a question is kinder
than an error; but only a terminal can answer, so that a job in the night fails with one clear line instead.

Refuses to know: settings files (its values come in as arguments), the network, whether the contact answers.
"""

from __future__ import annotations

import contextlib
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from comity import __version__
from comity.robots import product_token_problem
from comity.url import InvalidUrl, is_loopback_name, parse

PRODUCT = "comity"
VARIABLE = "COMITY_CONTACT"
TRIES = 3

OTHERS = frozenset(
    {
        "adsbot-google", "ahrefsbot", "amazonbot", "applebot", "baiduspider", "bingbot", "bytespider", "ccbot",
        "chatgpt-user", "chrome", "claudebot", "curl", "duckduckbot", "facebookexternalhit", "firefox",
        "googlebot", "googlebot-image", "googleother", "gptbot", "heritrix", "mozilla", "msnbot",
        "oai-searchbot", "perplexitybot", "petalbot", "python-requests", "safari", "scrapy", "semrushbot",
        "slurp", "twitterbot", "wget", "yandex", "yandexbot",
    }
)  # fmt: skip
"""Names under which others are known. To use one would be to pretend."""

_VERSION = re.compile(r"[A-Za-z0-9._-]{1,32}")
_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z][A-Za-z0-9-]{1,62}")


class BadIdentity(ValueError):
    """A product, version, contact or From that cannot be used. The message is one line: what, where it came from, how
    to mend it."""


class NoContact(ValueError):
    """The crawl would be anonymous."""

    def __init__(self) -> None:
        super().__init__(
            "a crawl needs a contact, so that those whose sites it visits can reach you: give a URL or a mail address "
            f"with --contact, in {VARIABLE}, or as identity.contact in comity.toml"
        )


@dataclass(frozen=True, slots=True)
class Identity:
    """As every request of a crawl shows it."""

    token: str  # what robots.txt is asked for
    user_agent: str
    contact: str | None = None  # None: all seeds are on this machine
    contact_from: str | None = None  # where the contact came from, in words
    mail: str | None = None  # the From field (RFC 9110 10.1.2); None: not sent


def contact_of(text: str) -> str:
    """A contact as it is sent: an http(s) URL, or a mail address (``mailto:`` is dropped). Raises `BadIdentity`."""
    text = text.strip().removeprefix("mailto:")
    if _MAIL.fullmatch(text):
        return text
    if not re.match(r"https?://", text, re.IGNORECASE):
        raise BadIdentity(f"{text!r} is neither a URL (https://…) nor a mail address")
    try:
        url = parse(text)
    except InvalidUrl as error:
        raise BadIdentity(f"{text!r} is not a URL: {error}") from error
    if is_loopback_name(url.host) or "." not in url.host.strip("."):
        raise BadIdentity(f"{text!r} can be reached from this machine or network only")
    if url.had_credentials:
        raise BadIdentity("a contact with a password in it would tell it to everybody")
    return url.href.replace("(", "%28").replace(")", "%29")  # parentheses end a comment (RFC 9110 5.6.5)


def identity(
    *,
    product: str = PRODUCT,
    version: str | None = None,
    contact: str | None = None,
    contact_from: str | None = None,
    mail: str | None = None,
) -> Identity:
    """Checks the parts and puts them together: ``product/version (+contact)``. Raises `BadIdentity`."""
    if problem := product_token_problem(product):
        raise BadIdentity(f"identity.product {product!r} cannot be used: {problem}")
    if product.lower() in OTHERS:
        raise BadIdentity(f"identity.product {product!r} is another's name: choose one of your own")
    version = version or __version__
    if not _VERSION.fullmatch(version):
        raise BadIdentity(f"identity.version {version!r} may hold letters, digits, '.', '_' and '-' only")
    if mail is not None and not _MAIL.fullmatch(mail):
        raise BadIdentity(f"identity.from {mail!r} is not a mail address")
    if contact is not None:
        try:
            contact = contact_of(contact)
        except BadIdentity as error:
            raise BadIdentity(f"{contact_from or 'contact'}: {error}") from error
    agent = f"{product}/{version}" + (f" (+{contact})" if contact else "")
    return Identity(product, agent, contact, contact_from if contact else None, mail)


def find(
    *,
    flag: str | None = None,
    environment: Mapping[str, str],
    configured: str | None = None,
    memory: Path | None,
    local: bool,
    ask: Callable[[str], str] | None = None,
    tell: Callable[[str], None] = lambda _: None,
    product: str = PRODUCT,
    version: str | None = None,
    mail: str | None = None,
) -> Identity:
    """The identity of a crawl. The contact is the first of: the flag, the environment, the settings, what was
    remembered (`memory`, see `memory_path`; None: remember nothing), the answer to a question.

    `local`: every seed is on this machine, so that no contact is needed and none is asked for. `ask` puts a question to
    a person and returns the answer (EOFError: there is none); None when nobody sits at a terminal. `tell` says what was
    remembered.

    Raises `NoContact`, and `BadIdentity` for a contact that is given and unusable (also when none is needed).
    """
    named = (
        (flag, "--contact"),
        (environment.get(VARIABLE), VARIABLE),
        (configured, "identity.contact"),
    )
    contact, source = next(((text, name) for text, name in named if text and text.strip()), (None, None))
    if contact is None and memory is not None:
        contact, source = remembered(memory), str(memory)
    if contact is None and not local:
        if ask is None:
            raise NoContact
        contact, source = _asked(ask, tell), "your answer"
        if memory is not None:
            _remember(memory, contact, tell)
    return identity(product=product, version=version, contact=contact, contact_from=source, mail=mail)


def memory_path(environment: Mapping[str, str], home: Path, platform: str) -> Path:
    """Where a user's contact is remembered: ``identity.toml`` in ``comity`` in the user's folder for settings
    (``XDG_CONFIG_HOME`` if set, as its specification says to an absolute path; on macOS else
    ``~/Library/Application Support``; else ``~/.config``). `platform` is `sys.platform`."""
    folder = Path(environment.get("XDG_CONFIG_HOME", ""))
    if not folder.is_absolute():
        folder = home / "Library" / "Application Support" if platform == "darwin" else home / ".config"
    return folder / "comity" / "identity.toml"


def remembered(path: Path) -> str | None:
    """The contact in an ``identity.toml``; None when there is no such file. Raises `BadIdentity` for one that cannot be
    read."""
    try:
        contact = tomllib.loads(path.read_text(encoding="utf-8")).get("contact")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise BadIdentity(f"{path} cannot be read ({error}): mend or remove it") from error
    if contact is not None and not isinstance(contact, str):
        raise BadIdentity(f"{path}: contact is not a text: mend or remove it")
    return contact or None


def _asked(ask: Callable[[str], str], tell: Callable[[str], None]) -> str:
    tell(
        "Every request says who asks, so that those whose sites are visited can reach you.\n"
        "Give the address of a page about your crawl, or a mail address. It is remembered for the next time."
    )
    for _ in range(TRIES):
        try:
            answer = ask("Contact: ").strip()
        except EOFError:
            break
        if not answer:
            break
        try:
            return contact_of(answer)
        except BadIdentity as error:
            tell(str(error))
    raise NoContact


def _remember(path: Path, contact: str, tell: Callable[[str], None]) -> None:
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A contact has no quote, backslash or control character in it: it is a URL's normal form or a mail address.
        aside.write_text(f'# How those whose sites you crawl can reach you.\ncontact = "{contact}"\n', encoding="utf-8")
        os.replace(aside, path)
    except OSError as error:  # the crawl can go on without a memory
        with contextlib.suppress(OSError):
            aside.unlink()
        tell(f"it could not be remembered: {error}")
    else:
        tell(f"remembered in {path}")
