"""Seeds from arguments, files and standard input: nothing lost, nothing mended in silence."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.seeds import Seeds, SeedsUnreadable, append, read
from comity.url import CleanUps


def read_text(text: str | bytes) -> Seeds:
    return read(files=["-"], stdin=io.BytesIO(text.encode() if isinstance(text, str) else text))


def hrefs(seeds: Seeds) -> list[str]:
    return [seed.url.href for seed in seeds.seeds]


def test_a_file_with_all_that_may_be_in_it(tmp_path: Path) -> None:
    file = tmp_path / "seeds.txt"
    file.write_bytes(
        b"\xef\xbb\xbfhttps://a.example/\r\n"  # a byte order mark, CRLF
        b"\r\n"
        b"   # a comment\r\n"
        b"https://b.example/x#frag\tsource=catalogue\tsource=x\tisSitemap=true\tlang = vi \r\n"
        b"  https://c.example/feed\tisFeed=TRUE\t\t\r\n"
        b"https://d.example/last"  # no line end
    )
    read_ = read(files=[file])
    assert hrefs(read_) == [
        "https://a.example/",
        "https://b.example/x#frag",
        "https://c.example/feed",
        "https://d.example/last",
    ]
    assert [seed.metadata for seed in read_.seeds] == [{}, {"source": ("catalogue", "x"), "lang": ("vi",)}, {}, {}]
    assert [(seed.is_sitemap, seed.is_feed) for seed in read_.seeds] == [
        (False, False),
        (True, False),
        (False, True),
        (False, False),
    ]
    assert read_.seeds[1].place == f"{file}, line 4"
    assert not read_.problems
    assert not read_.notes


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"ftp://a.example/", "'ftp://a.example/' cannot be crawled: its scheme is ftp, and only http and https"),
        (b"https://", "it has no host name"),
        (b"https://a.example:99999/", "its port is 99999"),
        (b"mailto:me@a.example", "its scheme is mailto"),
        (b"nonsense", "it has no scheme: write https://"),
        (b"https://a.example/a b", "there is white space in the URL 'https://a.example/a b'; metadata follow a tab"),
        (b"\tkey=value", "it is empty"),
        (b"https://a.example/caf\xe9", r"not UTF-8 (byte 0xE9 at position 22)"),
        (b"https://a.example/\xc3\xa9\xe9", r"not UTF-8 (byte 0xE9 at position 21)"),
        (b"\x00\x01\x02", "cannot be crawled"),
    ],
)
def test_a_bad_line_is_told_with_place_and_reason_and_costs_no_other(line: bytes, reason: str) -> None:
    read_ = read_text(b"https://a.example/1\n" + line + b"\nhttps://a.example/3\n")
    assert hrefs(read_) == ["https://a.example/1", "https://a.example/3"]
    assert [problem.place for problem in read_.problems] == ["standard input, line 2"]
    assert reason in str(read_.problems[0])


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ("a.example", "https://a.example/"),
        ("www.a.example/x?y=1", "https://www.a.example/x?y=1"),
        ("a.example:8080/x", "https://a.example:8080/x"),
        ("a.example.", "https://a.example./"),
        ("ví-dụ.example", "https://xn--v-d-rma6749a.example/"),
        ("localhost:8000", "http://localhost:8000/"),
        ("127.0.0.1:9811/a", "http://127.0.0.1:9811/a"),
        ("[::1]:8000/", "http://[::1]:8000/"),
        ("198.51.100.7", "https://198.51.100.7/"),
    ],
)
def test_a_host_without_a_scheme_is_read_and_told(text: str, read_as: str) -> None:
    read_ = read([text])
    assert hrefs(read_) == [read_as]
    assert str(read_.notes[0]).startswith(f"command line: {text!r} has no scheme and is read as http")


def test_a_file_given_as_a_url_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "seeds.txt").write_text("https://a.example/\n")
    monkeypatch.chdir(tmp_path)
    assert [str(problem) for problem in read(["seeds.txt"]).problems] == [
        "command line: 'seeds.txt' is a file: give it with --seeds"
    ]


def test_credentials_are_left_out_and_told() -> None:
    read_ = read(["https://me:secret@a.example/"])
    assert hrefs(read_) == ["https://a.example/"]
    assert "left out" in str(read_.notes[0])
    assert "secret" not in str(read_.notes[0])


def test_metadata_that_are_none_are_told_and_the_seed_is_used() -> None:
    read_ = read_text("https://a.example/\tsource\t=x\ta=b=c\tempty=\n")
    assert read_.seeds[0].metadata == {"a": ("b=c",), "empty": ("",)}
    assert [note.text for note in read_.notes] == [
        "'source' is not key=value and is left out",
        "'=x' is not key=value and is left out",
    ]


def test_the_first_of_equal_seeds_counts() -> None:
    read_ = read_text("https://a.example/x\tn=1\nhttps://a.example/%78\tn=2\nhttps://a.example/x?u=1\n")
    assert [seed.metadata for seed in read_.seeds] == [{"n": ("1",)}, {}]
    assert read_.repeats == 1
    clean = CleanUps(drop_query_params=("u",))
    assert len(read(["https://a.example/x", "https://a.example/x?u=1"], clean=clean).seeds) == 1


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
def test_files_of_all_sorts(end: str, encoding: str, zipped: bool) -> None:
    data = f"https://a.example/é{end}# ü{end}{end}b.example{end}".encode(encoding)
    read_ = read_text(gzip.compress(data) if zipped else data)
    assert hrefs(read_) == ["https://a.example/%C3%A9", "https://b.example/"]
    assert read_.seeds[1].place == "standard input, line 4"
    assert not read_.problems


def test_arguments_come_before_files_in_the_order_given(tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name).write_text(f"https://{name}.example/\n")
    read_ = read(["https://z.example/"], [tmp_path / "y", tmp_path / "x"])
    assert hrefs(read_) == ["https://z.example/", "https://y.example/", "https://x.example/"]


def test_standard_input_stays_open() -> None:
    stdin = io.BytesIO(b"https://a.example/\n")
    read(files=["-"], stdin=stdin)
    assert not stdin.closed


@pytest.mark.parametrize(
    ("name", "reason"), [("none", "No such file"), ("folder", "Is a directory"), ("-", "there is")]
)
def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(SeedsUnreadable, match=reason):
        read(files=[name if name == "-" else tmp_path / name])


@pytest.mark.parametrize("cut", [20, 5, 2])
def test_a_damaged_gzip_is_one_clear_line(tmp_path: Path, cut: int) -> None:
    (tmp_path / "s.gz").write_bytes(gzip.compress(b"https://a.example/\n" * 50)[:-cut] + b"\xff")
    with pytest.raises(SeedsUnreadable, match=r"cannot read the seeds in .*s\.gz: "):
        read(files=[tmp_path / "s.gz"])


@pytest.mark.parametrize("old", [None, "", "https://a.example/\n", "https://a.example/", "https://a.example/\r\n"])
def test_seeds_added_later_are_kept_once(tmp_path: Path, old: str | None) -> None:
    file = tmp_path / "seeds.txt"
    if old is not None:
        file.write_text(old, newline="")
    for _ in range(2):
        append(file, ["https://a.example/", "https://b.example/\tx=1", "https://b.example/\tx=1"])
    assert hrefs(read(files=[file])) == ["https://a.example/", "https://b.example/"]
    assert read(files=[file]).repeats == 0


@pytest.mark.parametrize(
    ("urls", "local"),
    [
        ((), False),
        (("http://127.0.0.1:9/", "http://[::1]/", "http://x.localhost/"), True),
        (("http://127.0.0.1/", "http://a.example/"), False),
    ],
)
def test_local_means_every_seed_is_on_this_machine(urls: tuple[str, ...], local: bool) -> None:
    assert read(urls).local is local


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")))
@settings(deadline=None, max_examples=200)
def test_whatever_stands_in_a_file_is_a_seed_a_problem_or_a_comment(data: bytes) -> None:
    try:
        read_ = read_text(data)
    except SeedsUnreadable:
        assert data.startswith(b"\x1f\x8b")
        return
    places = [seed.place for seed in read_.seeds] + [problem.place for problem in read_.problems]
    assert len(set(places)) == len(places)
    if not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b")):
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
        lines = [line.strip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
        meant = [line for line in lines if line and not line.startswith("#")]
        assert len(places) + read_.repeats == len(meant)


def test_long_nonsense_is_read_quickly() -> None:
    import time

    began = time.process_time()
    for line in ("a." * 50_000 + "/", "." * 100_000, "a:" * 50_000, "[" * 100_000, "a" * 100_000):
        read([line])
    assert time.process_time() - began < 2
