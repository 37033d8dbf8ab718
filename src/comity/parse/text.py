"""The words of a page, as a reader would see them.

Owns how a tree of elements becomes lines of text: what is never shown is left out, a block stands on lines of its own,
and white space is no more than one space. Reading order is document order. Plain-text bodies pass through here too.

Refuses to know what is content and what is navigation: that is judgement, and belongs to whoever uses the text.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

_UNSEEN = "script,style,noscript,noframes,iframe,template,object"
_BLOCK_NAMES = (
    "address article aside blockquote br button caption center dd details dialog dir div dl dt fieldset figcaption"
    " figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol option p pre search section"
    " select summary table tbody td textarea tfoot th thead tr ul video"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_SPACES = re.compile(r"[ \t\r\f\v]{2,}|[\t\r\f\v]")
_WHITE = " \n\t\r\f\v"


def visible(tree: LexborHTMLParser) -> str:
    """The text of the body. Takes what is not shown out of the tree: call it last."""
    body = tree.body
    if body is None:
        return ""
    for node in body.css(_UNSEEN):
        node.decompose()
    parts: list[str] = []
    glue = False  # would the next piece stick to the last one?
    for node in body.traverse(include_text=True):
        tag = node.tag
        if tag == "-text":
            piece = node.text_content
            if piece:
                if glue and piece[0] not in _WHITE and _follows_block(node):
                    parts.append("\n")
                parts.append(piece.replace("\n", " ") if "\n" in piece else piece)
                glue = piece[-1] not in _WHITE
        elif tag in _BLOCKS:
            parts.append("\n")
            glue = False
    return tidy("".join(parts))


def _follows_block(node: LexborNode) -> bool:
    """Did a block end between this text and what came before it? (That one began is seen on the way down.)"""
    at: LexborNode | None = node
    while at is not None and at.tag not in _BLOCKS:
        before = at.prev
        if before is not None:
            while before is not None and before.tag not in _BLOCKS:
                before = before.last_child
            return before is not None
        at = at.parent
    return False


def tidy(text: str) -> str:
    """One space between words, no space around lines, no empty lines."""
    lines = "\n".join([line for line in map(str.strip, text.split("\n")) if line])
    return _SPACES.sub(" ", lines) if "  " in lines or "\t" in lines or "\r" in lines else lines
