"""Which characters a page's bytes are.

Owns the order of the evidence (HTML Standard 13.2.3, ENC-1): a byte-order mark beats everything, then the charset of
the HTTP field, then what the document says of itself, then whether the bytes are valid UTF-8, and windows-1252 where
nothing is known. Labels mean what the Encoding Standard says, which is not what Python's codecs of the same name are:
"iso-8859-1" is windows-1252, "gb2312" is GBK, "utf-7" is nothing at all (ENC-2, ENC-5).

Decoding never fails: what is no character becomes U+FFFD (ENC-3). The bytes themselves stay untouched; this is for
reading only. Refuses to guess by statistics: a wrong guess turns a readable page into noise.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from typing import NamedTuple

# The Encoding Standard, 4.2: name (and Python's codec where that has another name), then its other labels.
_LABELS = """
utf-8: unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8
ibm866=cp866: 866 cp866 csibm866
iso-8859-2: csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
iso-8859-3: csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3
iso-8859-4: csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4
iso-8859-5: csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988
iso-8859-6: arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e iso-8859-6-i iso-ir-127 \
iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso-8859-7: csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7 iso_8859-7:1987 \
sun_eu_greek
iso-8859-8: csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 \
iso_8859-8:1988 visual
iso-8859-8-i=iso-8859-8: csiso88598i logical
iso-8859-10: csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso-8859-13: iso8859-13 iso885913
iso-8859-14: iso8859-14 iso885914
iso-8859-15: csisolatin9 iso8859-15 iso885915 iso_8859-15 l9
iso-8859-16:
koi8-r: cskoi8r koi koi8 koi8_r
koi8-u: koi8-ru
macintosh=mac-roman: csmacintosh mac x-mac-roman
windows-874=cp874: dos-874 iso-8859-11 iso8859-11 iso885911 tis-620
windows-1250=cp1250: cp1250 x-cp1250
windows-1251=cp1251: cp1251 x-cp1251
windows-1252=cp1252: ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 \
iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252
windows-1253=cp1253: cp1253 x-cp1253
windows-1254=cp1254: cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 \
x-cp1254
windows-1255=cp1255: cp1255 x-cp1255
windows-1256=cp1256: cp1256 x-cp1256
windows-1257=cp1257: cp1257 x-cp1257
windows-1258=cp1258: cp1258 x-cp1258
x-mac-cyrillic=mac-cyrillic: x-mac-ukrainian
gbk=gb18030: chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk
gb18030:
big5=big5hkscs: big5-hkscs cn-big5 csbig5 x-x-big5
euc-jp: cseucpkdfmtjapanese x-euc-jp
iso-2022-jp: csiso2022jp
shift_jis=cp932: csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis
euc-kr=cp949: cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949
replacement: csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr
utf-16be: unicodefffe
utf-16le: csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16
x-user-defined:
"""
_MULTIBYTE = frozenset(
    {"gbk", "gb18030", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr", "utf-16be", "utf-16le"}
)
_PRESCAN_BYTES = 1_024
_LATE_BYTES = 65_536  # declarations are met later than the standard looks


def _table() -> tuple[dict[str, str], dict[str, str]]:
    labels: dict[str, str] = {}
    codec_of: dict[str, str] = {}
    for line in _LABELS.strip().splitlines():
        name, _, others = line.partition(": ")
        name, _, codec = name.rstrip(":").partition("=")
        codec_of[name] = codec or name
        labels |= dict.fromkeys([name, *others.split()], name)
    return labels, codec_of


_NAME, _CODEC = _table()


def name_of(label: str | None) -> str | None:
    """The encoding that a label names, in lower case, or None (Encoding Standard 4.2)."""
    return _NAME.get(label.strip("\t\n\f\r ").lower()) if label else None


class Decoded(NamedTuple):
    data: bytes  # UTF-8; may still hold invalid sequences where the page did
    encoding: str  # name in lower case


def to_utf8(body: bytes, charset: str | None) -> Decoded:
    """The body of an HTML page as UTF-8 without its mark. `charset`: the HTTP field's, if any."""
    name, start = detect(body, charset)
    if name == "utf-8":
        return Decoded(body[start:] if start else body, name)
    return Decoded(decode(body[start:], name).encode("utf-8", "replace"), name)


def detect(body: bytes, charset: str | None) -> tuple[str, int]:
    """(name of the encoding, length of the byte-order mark)."""
    if body.startswith(b"\xef\xbb\xbf"):
        return "utf-8", 3
    if body.startswith(b"\xfe\xff"):
        return "utf-16be", 2
    if body.startswith(b"\xff\xfe"):
        return "utf-16le", 2
    name = name_of(charset) or _declared(body)
    if name is None:
        name = "utf-8" if is_utf8(body) else "windows-1252"
    return name, 0


def decode(data: bytes, name: str) -> str:
    """Characters of `data` in the encoding of that name (as `name_of` gives it). Never raises."""
    if name == "utf-8":
        return data.decode("utf-8", "replace")
    if name == "replacement":
        return "\ufffd" if data else ""
    if name in _MULTIBYTE:
        return data.decode(_CODEC[name], "replace")
    return codecs.charmap_decode(data, "replace", _single_byte(name))[0]


def encode_query(reference: str, name: str) -> str:
    """A reference with the characters of its query spelt in the page's own encoding, as forms of that page would
    (URL Standard, query state; URL-4). What the encoding lacks becomes an escaped numeric reference."""
    if reference.isascii() or name in {"utf-8", "utf-16le", "utf-16be", "replacement", "x-user-defined"}:
        return reference
    rest, mark, fragment = reference.partition("#")
    path, question, query = rest.partition("?")
    codec = "gbk" if name == "gbk" else _CODEC[name]  # gb18030 has everything, GBK has not
    query = re.sub(r"[^\x00-\x7f]", lambda found: _escaped(found[0], codec), query)
    return path + question + query + mark + fragment


def _escaped(character: str, codec: str) -> str:
    try:
        data = character.encode(codec)
    except UnicodeEncodeError:
        return f"%26%23{ord(character)}%3B"
    return "".join(chr(byte) if 0x30 <= byte <= 0x7E and byte not in b"<>" else f"%{byte:02X}" for byte in data)


@lru_cache(maxsize=64)
def _single_byte(name: str) -> str:
    """256 characters. Bytes that Python's tables leave out are C1 controls below A0 and nothing above, as in the
    Encoding Standard's indexes (windows-1252: 81 is U+0081)."""
    if name == "x-user-defined":
        return "".join(chr(byte if byte < 0x80 else 0xF700 + byte) for byte in range(256))
    codec = _CODEC[name]
    table = [bytes([byte]).decode(codec, "replace") for byte in range(256)]
    return "".join(chr(byte) if found == "\ufffd" and byte < 0xA0 else found for byte, found in enumerate(table))


def is_utf8(body: bytes) -> bool:
    """Valid UTF-8, but for a character cut off at the end."""
    try:
        codecs.utf_8_decode(body, "strict", False)
    except UnicodeDecodeError:
        return False
    return True


# --------------------------------------------------------------------------------- what the document says of itself

_XML = re.compile(rb"""<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([^"'>]{1,40})["']""")
_ATTRIBUTE = re.compile(
    rb"""[\t\n\f\r /]*([^\t\n\f\r />=][^\t\n\f\r />=]*|=[^\t\n\f\r />=]*)"""
    rb"""(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^\t\n\f\r >"'][^\t\n\f\r >]*)))?"""
)
_MARKUP = re.compile(rb"<(?:!--|[!?]|/?[A-Za-z])")
_CHARSET = re.compile(
    r"""charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^"'\t\n\f\r ;][^\t\n\f\r ;]*))""", re.I
)


def _declared(body: bytes) -> str | None:
    head = body[:_PRESCAN_BYTES]
    if head.startswith(b"<?xml") and (xml := _XML.match(head)) is not None:
        name = name_of(xml[1].decode("latin-1"))
        if name is not None:
            return "utf-8" if name.startswith("utf-16") else name
    found = _prescan(head)
    if found is None and len(body) > _PRESCAN_BYTES and b"charset" in (late := body[:_LATE_BYTES]).lower():
        found = _prescan(late)
    return found


def _prescan(head: bytes) -> str | None:
    """HTML Standard 13.2.3.2, "prescan a byte stream to determine its encoding"."""
    position = 0
    while (markup := _MARKUP.search(head, position)) is not None:
        start = markup.start()
        if markup[0] == b"<!--":
            end = head.find(b"-->", start + 2)
            position = end + 3 if end >= 0 else len(head)
        elif markup[0] in {b"<!", b"<?"}:
            end = head.find(b">", start)
            position = end + 1 if end >= 0 else len(head)
        else:
            is_meta = head[start + 1 : start + 5].lower() == b"meta" and head[start + 5 : start + 6] in b"\t\n\f\r /"
            tag = re.compile(rb"</?[^\t\n\f\r >]*").match(head, start)
            attributes, position = _attributes(head, tag.end() if tag else start + 1)
            if is_meta and (name := _meta_encoding(attributes)) is not None:
                return name
    return None


def _attributes(head: bytes, position: int) -> tuple[dict[bytes, bytes], int]:
    found: dict[bytes, bytes] = {}
    while (attribute := _ATTRIBUTE.match(head, position)) is not None:
        position = attribute.end()
        found.setdefault(attribute[1].lower(), attribute[2] or attribute[3] or attribute[4] or b"")
    return found, position


def _meta_encoding(attributes: dict[bytes, bytes]) -> str | None:
    label: str | None = None
    if b"charset" in attributes:
        label = attributes[b"charset"].decode("latin-1")
    elif attributes.get(b"http-equiv", b"").lower() == b"content-type":
        found = _CHARSET.search(attributes.get(b"content", b"").decode("latin-1"))
        label = (found[1] or found[2] or found[3]) if found is not None else None
    name = name_of(label)
    if name in {"utf-16le", "utf-16be"}:  # it was read as ASCII, so it is no such thing
        return "utf-8"
    return "windows-1252" if name == "x-user-defined" else name
