"""`comity.parse.encoding`: the order of the evidence, and what labels mean (ENC-1 … ENC-5)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.parse import encoding
from comity.parse.encoding import decode, detect, encode_query, name_of, to_utf8


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("UTF-8", "utf-8"),
        (" utf8\t", "utf-8"),
        ("iso-8859-1", "windows-1252"),
        ("latin1", "windows-1252"),
        ("ascii", "windows-1252"),
        ("ISO-8859-9", "windows-1254"),
        ("iso-8859-11", "windows-874"),
        ("gb2312", "gbk"),
        ("sjis", "shift_jis"),
        ("ks_c_5601-1987", "euc-kr"),
        ("utf-16", "utf-16le"),
        ("hz-gb-2312", "replacement"),
        ("utf-7", None),
        ("latin-1", None),  # Python's name, nobody's label
        ("", None),
        (None, None),
    ],
)
def test_enc_2_labels(label: str | None, name: str | None) -> None:
    assert name_of(label) == name


def test_every_label_of_the_standard_can_be_decoded() -> None:
    names = set(encoding._NAME.values())
    assert len(names) == 40
    assert len(encoding._NAME) == 228
    for name in names:
        assert isinstance(decode(bytes(range(256)), name), str)


@pytest.mark.parametrize(
    ("body", "charset", "name"),
    [
        (b"\xef\xbb\xbf<p>", "windows-1251", "utf-8"),  # B150: the mark beats the header
        (b"\xff\xfe<\0", "utf-8", "utf-16le"),
        (b"\xfe\xff\0<", None, "utf-16be"),
        (b"<meta charset=windows-1252>", "utf-8", "utf-8"),  # B151: the header beats the document
        (b"<meta charset=koi8-r>", "nonsense", "koi8-r"),
        (b"<meta charset='koi8-r'>", None, "koi8-r"),
        (b'<META\nCHARSET = "KOI8-R" >', None, "koi8-r"),
        (b'<meta http-equiv=Content-Type content="text/html; charset=koi8-r">', None, "koi8-r"),
        (b'<meta content="text/html; charset=koi8-r" http-equiv=content-type>', None, "koi8-r"),
        (b'<meta content="text/html; charset=koi8-r">', None, "utf-8"),  # no http-equiv
        (b"<!-- <meta charset=koi8-r> --><meta charset=big5>", None, "big5"),
        (b"<p title='<meta charset=koi8-r>'><meta charset=big5>", None, "big5"),
        (b"<metadata charset=koi8-r><meta charset=big5>", None, "big5"),
        (b"<meta charset=utf-7><meta charset=big5>", None, "big5"),
        (b"<meta charset=utf-16>", None, "utf-8"),
        (b"<meta charset=x-user-defined>", None, "windows-1252"),
        (b"<?xml version='1.0' encoding='koi8-r'?><html>", None, "koi8-r"),
        (b"<script>" + b" " * 5_000 + b"</script><meta charset=koi8-r>", None, "koi8-r"),  # B152
        (b"\xc3\xa9", None, "utf-8"),
        (b"abc\xc3", None, "utf-8"),  # cut in the middle of a character
        (b"\xe9t\xe9", None, "windows-1252"),
        (b"", None, "utf-8"),
        (b'<meta charset="UTF-8' + b"x" * 400_000, None, "utf-8"),  # B153
    ],
)
def test_enc_1_the_order_of_the_evidence(body: bytes, charset: str | None, name: str) -> None:
    assert detect(body, charset)[0] == name


@pytest.mark.parametrize(
    ("data", "name", "text"),
    [
        (b"\x80\x93\x81", "windows-1252", "\u20ac\u201c\x81"),  # B156
        (b"\xff\xe9", "utf-8", "\ufffd\ufffd"),
        (b"\x81\x30\x81\x30", "gbk", "\x80"),
        (b"\x87\x40", "shift_jis", "①"),
        (b"\xa1\xff", "windows-1253", "\u0385\ufffd"),
        (b"anything", "replacement", "\ufffd"),
        (b"A\x80", "x-user-defined", "A\uf780"),
        (b"\x00a", "utf-8", "\x00a"),
    ],
)
def test_enc_3_decoding_never_fails(data: bytes, name: str, text: str) -> None:
    assert decode(data, name) == text


@pytest.mark.parametrize(
    ("reference", "name", "spelt"),
    [
        ("/ñ?q=é#é", "windows-1252", "/ñ?q=%E9#é"),
        ("/x?c=\u2329", "windows-1252", "/x?c=%26%239001%3B"),  # B079
        ("/ñ?c=€", "iso-8859-15", "/ñ?c=%A4"),
        ("/x?q=日本", "shift_jis", "/x?q=%93%FA%96{"),
        ("/x?q=日", "utf-8", "/x?q=日"),
        ("/é", "windows-1252", "/é"),
        ("/?a=b", "windows-1252", "/?a=b"),
    ],
)
def test_url_4_queries_are_spelt_in_the_pages_encoding(reference: str, name: str, spelt: str) -> None:
    assert encode_query(reference, name) == spelt


@settings(deadline=None)
@given(st.binary(), st.none() | st.sampled_from(sorted(set(encoding._NAME.values()))) | st.text(max_size=5))
def test_any_bytes_are_some_text(body: bytes, charset: str | None) -> None:
    data, name = to_utf8(body, charset)
    assert name_of(name) == name
    data.decode("utf-8", "replace")


@settings(deadline=None)
@given(st.text(), st.sampled_from(sorted(set(encoding._NAME.values()))))
def test_any_reference_can_be_spelt_in_any_encoding(reference: str, name: str) -> None:
    spelt = encode_query(reference, name)
    assert spelt == reference or not reference.isascii()


@settings(deadline=None)
@given(st.text(st.characters(codec="koi8-r")))
def test_a_declared_page_is_read_as_declared(text: str) -> None:
    body = b"<meta charset=koi8-r>" + text.encode("koi8-r")
    assert to_utf8(body, None).data.decode() == "<meta charset=koi8-r>" + text
