"""Content codings: what is undone, however it is cut, and what a wrong label does (MSG-5 to MSG-7, SAFE-4)."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Callable, Iterator

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.fetch import decode
from comity.fetch.decode import PIECE_BYTES, DecodeError, opened

TEXT = "".join(f"<a href='/p{n * 7919 % 10007}'>số {n}</a>\n" for n in range(4000)).encode()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def with_header_fields(data: bytes) -> bytes:
    """A gzip member with FEXTRA, FNAME, FCOMMENT and FHCRC."""
    plain = gzip.compress(data)
    return plain[:3] + b"\x1e" + plain[4:10] + b"\x03\0abc" + b"name\0" + b"comment\0" + b"\x12\x34" + plain[10:]


CODED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("X-GZIP", gzip.compress),
    "gzip of two members": ("gzip", lambda data: gzip.compress(data[:100]) + gzip.compress(data[100:])),
    "gzip and zeros": ("gzip", lambda data: gzip.compress(data) + bytes(512)),
    "gzip and garbage": ("gzip", lambda data: gzip.compress(data) + b"<!-- cached -->"),
    "gzip with all header fields": ("gzip", with_header_fields),
    "zlib": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", lambda data: bytes(brotli.compress(data, quality=4))),
    "two": ("gzip, br", lambda data: bytes(brotli.compress(gzip.compress(data), quality=4))),
    "gzip said twice": ("gzip, gzip", gzip.compress),
    "gzip twice": ("gzip,gzip", lambda data: gzip.compress(gzip.compress(data))),
    "plain as gzip": ("gzip", bytes),
    "plain as deflate": ("deflate", bytes),
    "plain as br": ("br", bytes),
    "plain as nonsense": ("x-my-cdn", bytes),
}


def run(field: str, data: bytes, step: int = 1 << 30) -> tuple[bytes, bool]:
    coding = opened([field])
    assert coding is not None
    pieces = [piece for at in range(0, len(data), step) for piece in coding.feed(data[at : at + step])]
    return b"".join(pieces), coding.whole


@pytest.mark.parametrize("step", [1, 7, 4096, 1 << 30])
@pytest.mark.parametrize("name", CODED)
def test_msg_5_7_b146_every_coding_comes_out_whole_however_it_is_cut(name: str, step: int) -> None:
    field, coded = CODED[name]
    assert run(field, coded(TEXT), step) == (TEXT, True)


@pytest.mark.parametrize("size", [1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
@pytest.mark.parametrize("name", ["gzip", "zlib", "raw deflate", "br", "gzip twice"])
def test_no_byte_is_lost_at_the_edge_of_a_piece(name: str, size: int) -> None:
    field, coded = CODED[name]
    for data in (b"a" * size, (TEXT * 3)[:size]):
        assert run(field, coded(data)) == (data, True)
        assert run(field, coded(data), 5) == (data, True)


@pytest.mark.parametrize("field", ["", " ", "identity", "none", "utf-8", "UTF-8", "identity, identity", "binary", ","])
def test_b146_a_field_that_names_no_coding_is_none(field: str) -> None:
    assert opened([field]) is None


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "gzip, br", "x-my-cdn"])
def test_nothing_is_whole(name: str) -> None:
    coding = opened([name])
    assert coding is not None and coding.whole


@pytest.mark.parametrize("field", ["zstd", "compress", "dcb", "x-my-cdn"])
def test_msg_5_a_coding_that_was_not_offered_is_named(field: str) -> None:
    with pytest.raises(DecodeError, match=field):
        run(field, b"\x28\xb5\x2f\xfd\x04\x00" + bytes(range(256)))


def test_safe_4_more_than_two_codings_are_refused() -> None:
    with pytest.raises(DecodeError, match="3 codings"):
        opened(["gzip", "gzip, br"])
    assert opened(["gzip", "br", "identity"]) is not None


@pytest.mark.parametrize("step", [1000, 1 << 30])
@pytest.mark.parametrize("name", ["gzip", "zlib", "raw deflate", "br", "two"])
def test_msg_7_a_stream_that_is_cut_off_keeps_its_beginning(name: str, step: int) -> None:
    field, coded = CODED[name]
    given_, whole = run(field, coded(TEXT)[:-1500], step)
    assert len(given_) > 5_000 and TEXT.startswith(given_) and not whole


def test_msg_7_a_checksum_that_does_not_hold_keeps_the_page_and_flags_it() -> None:
    broken = bytearray(gzip.compress(TEXT))
    broken[-8] ^= 1
    assert run("gzip", bytes(broken)) == (TEXT, False)
    assert run("gzip", gzip.compress(TEXT)[:-4]) == (TEXT, False)


def test_msg_7_a_stream_that_breaks_in_the_middle_keeps_its_beginning() -> None:
    data = bytearray(raw_deflate(TEXT * 20))
    data[len(data) // 2 :] = b"\xff" * (len(data) - len(data) // 2)
    for field, prefix in (("deflate", b""), ("gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03")):
        kept, whole = run(field, prefix + bytes(data), 4096)
        assert (TEXT * 20).startswith(kept[:PIECE_BYTES]) and len(kept) > PIECE_BYTES and not whole


@pytest.mark.parametrize(
    ("field", "data"),
    [
        ("gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xff\xff\xff\xff"),
        ("deflate", b"\x78\x9c\xff\xff\xff\xff\x01\x02"),
        ("br", b"\xff\xff\xff\xff\x00\x01"),
    ],
)
def test_what_is_neither_the_coding_nor_text_is_an_error(field: str, data: bytes) -> None:
    with pytest.raises(DecodeError):
        run(field, data)


def zeros(name: str) -> bytes:
    """A stream that unfolds to 256 MiB."""
    if name == "br":
        packer = brotli.Compressor(quality=1)
        return b"".join([packer.process(bytes(1 << 20)) for _ in range(256)]) + bytes(packer.finish())
    inflated = zlib.compressobj(9, zlib.DEFLATED, 31 if name == "gzip" else zlib.MAX_WBITS)
    return b"".join([inflated.compress(bytes(1 << 20)) for _ in range(256)]) + inflated.flush()


@pytest.mark.parametrize("name", ["gzip", "deflate", "br"])
def test_safe_4_b117_a_bomb_unfolds_only_as_far_as_it_is_asked(name: str) -> None:
    coding = opened([name])
    assert coding is not None
    pieces: Iterator[bytes] = coding.feed(zeros(name))
    sizes = [len(next(pieces)) for _ in range(8)]
    assert max(sizes) <= 4 * PIECE_BYTES  # brotli rounds its buffer up


def test_a_gzip_header_without_end_is_given_up() -> None:
    with pytest.raises(DecodeError, match="without end"):
        run("gzip", b"\x1f\x8b\x08\x08\0\0\0\0\0\x03" + b"x" * 100_000, 1000)


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "br", "gzip, br", "foo"]), st.integers(1, 50))
@settings(deadline=None)
def test_any_bytes_under_any_label_give_bytes_or_one_kind_of_error(data: bytes, field: str, step: int) -> None:
    for given_ in (data, gzip.compress(data)[:-3], b"\x1f\x8b" + data):
        out: object = None
        with contextlib.suppress(DecodeError):
            out, _ = run(field, given_, step)
        assert out is None or isinstance(out, bytes)


@given(st.binary(max_size=2000), st.integers(1, 64))
@settings(deadline=None)
def test_any_bytes_come_back(data: bytes, step: int) -> None:
    for field, coded in (CODED[name] for name in ("gzip", "zlib", "br", "gzip twice", "two")):
        assert run(field, coded(data), step) == (data, True)


def test_what_is_offered_is_what_is_undone() -> None:
    for name in decode.OFFERED.split(", "):
        assert not isinstance(opened([name]), decode._Unknown)
