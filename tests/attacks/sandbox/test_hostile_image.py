"""An image whose links lead out of it: what they name on this machine is neither shown nor written."""

import io
import json
import tarfile
from contextlib import suppress
from pathlib import Path

import pytest

from amem.cli.main import run
from amem.errors import AmemError
from amem.launch import images
from amem.settings.root import Root
from tests.sandbox.images import lay_out
from tests.sandbox.launching import Place


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("name", ["etc/timezone", "etc/ssl/certs", "etc/alternatives", "etc/os-release"])
def test_a_link_in_etc_shows_nothing_of_the_host(here: Place, name: str, relative: bool) -> None:
    secret = here.base / "secret"
    secret.mkdir()
    (secret / "key").write_text("planted secret")
    image = lay_out(here.base / "image")
    place = image / name
    if place.is_dir():
        for path in place.iterdir():
            path.unlink()
        place.rmdir()
    else:
        place.unlink(missing_ok=True)
    aim = secret / "key" if name in ("etc/timezone", "etc/os-release") else secret
    place.symlink_to("../" * 12 + str(aim)[1:] if relative else aim)
    here.own()
    done = here.launch("sh", "-c", f"cat /{name} /{name}/key; echo looked", spec={"image": str(image)})
    assert done["code"] == 0 and done["out"] == "looked\n", done


@pytest.mark.parametrize("name", ["etc/ssl", "usr"])
def test_a_folder_that_is_a_link_is_not_followed_on_the_host(here: Place, name: str) -> None:
    secret = here.base / "secret"
    for folder in ("certs", "bin"):
        (secret / folder).mkdir(parents=True)
        (secret / folder / "key").write_text("planted secret")
    image = lay_out(here.base / "image")
    (image / name).rename(image / "aside")
    (image / name).symlink_to(secret)
    here.own()
    done = here.launch("sh", "-c", f"cat /{name}/certs/key /{name}/bin/key", spec={"image": str(image)})
    assert "planted" not in done.get("out", "") + done.get("err", "")
    assert name == "etc/ssl" or done.get("code") == 127  # there is no shell left


def archive(tmp_path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> str:
    path = tmp_path / "image.tar"
    with tarfile.open(path, "w") as made:
        for folder in ("usr", "usr/bin", "etc"):
            about = tarfile.TarInfo(folder)
            about.type, about.mode = tarfile.DIRTYPE, 0o755
            made.addfile(about)
        for about, data in members:
            about.size = len(data)
            made.addfile(about, io.BytesIO(data))
    return str(path)


def member(name: str, kind: bytes = tarfile.REGTYPE, aim: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    about = tarfile.TarInfo(name)
    about.type, about.linkname, about.mode = kind, aim, mode
    return about


@pytest.fixture
def root(tmp_path: Path) -> Root:
    root = Root(tmp_path / "root")
    root.state.mkdir(parents=True)
    return root


def outside(tmp_path: Path) -> list[Path]:
    return [path for path in tmp_path.rglob("*") if path.name == "evil"]


@pytest.mark.parametrize(
    "members",
    [
        [(member("../../../evil"), b"x")],
        [(member("usr/bin/../../../../evil"), b"x")],
        [(member("hole", tarfile.SYMTYPE, "../../.."), b""), (member("hole/evil"), b"x")],
        [(member("usr/deep", tarfile.SYMTYPE, "/tmp"), b""), (member("usr/deep/evil"), b"x")],
        [(member("evil", tarfile.LNKTYPE, "../../../../../outside"), b"")],
        [(member("evil", tarfile.LNKTYPE, "/etc/passwd"), b"")],
        [(member("usr/in", tarfile.SYMTYPE, "/etc"), b""), (member("evil", tarfile.LNKTYPE, "usr/in/passwd"), b"")],
    ],
    ids=["dots", "dots within", "relative link", "absolute link", "hard link", "absolute hard link", "hard link through a link"],
)  # fmt: skip
def test_an_archive_that_climbs_out_is_refused_whole(tmp_path: Path, root: Root, members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    (tmp_path / "outside").write_text("a file of this machine")
    with pytest.raises(AmemError, match="cannot be unpacked"):
        images.unpack(root, archive(tmp_path, *members))
    assert outside(tmp_path) == [] and not Path("/tmp/evil").exists()
    assert images.images(root) == [] and not (root.state / "image/current").exists()
    assert not list((root.state / "image").glob(".part-*"))


@pytest.mark.parametrize("again", ["link", "hard link"])
def test_a_folder_of_this_machine_is_neither_given_away_nor_opened(tmp_path: Path, root: Root, again: str) -> None:
    """A folder that was named through a link, which then leads elsewhere: by that name its owner, mode and time are no longer its own."""
    secret = tmp_path / "home/secret"
    secret.mkdir(parents=True, mode=0o700)
    before = secret.stat()
    folder = member("way/secret", tarfile.DIRTYPE, mode=0o755)
    folder.uid = folder.gid = 4242
    anew = (member("way", tarfile.SYMTYPE, str(secret.parent)), b"")
    if again == "hard link":
        anew = (member("way", tarfile.LNKTYPE, "usr/aim"), b"")
    members = (
        (member("usr/own", tarfile.DIRTYPE, mode=0o755), b""), (member("way", tarfile.SYMTYPE, "usr/own"), b""), (folder, b""),
        (member("usr/aim", tarfile.SYMTYPE, str(secret.parent)), b""), anew,
    )  # fmt: skip
    with suppress(AmemError):
        images.unpack(root, archive(tmp_path, *members))
    after = secret.stat()
    assert (after.st_mode, after.st_uid, after.st_mtime_ns) == (before.st_mode, before.st_uid, before.st_mtime_ns)


def test_devices_and_special_bits_are_not_unpacked(tmp_path: Path, root: Root) -> None:
    found = images.unpack(
        root,
        archive(
            tmp_path, (member("usr/bin/su", mode=0o6755), b"x"), (member("usr/bin/open", mode=0o777), b"x"),
            (member("usr/kmem", tarfile.CHRTYPE), b""), (member("usr/fifo", tarfile.FIFOTYPE), b""),
        ),
    )  # fmt: skip
    assert (found.path / "usr/bin/su").stat().st_mode & 0o7777 == 0o755
    assert (found.path / "usr/bin/open").stat().st_mode & 0o7777 == 0o755
    assert sorted(path.name for path in (found.path / "usr").iterdir()) == ["bin"]


def test_what_an_image_says_of_itself_is_inert_on_a_terminal(tmp_path: Path, root: Root, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--root", str(root.path), "init", "--owner", "human:asf:you"]) == 0
    said = (member("opt/amem/image.json"), json.dumps({"harnesses": {"claude\x1b[2J": "1\x1b]0;title\x07"}}).encode())
    assert run(["--root", str(root.path), "image", "unpack", "--from", archive(tmp_path, said)]) == 0
    assert "claude\\x1b[2J 1\\x1b]0;title\\x07" in capsys.readouterr().out


def test_what_is_no_root_file_system_is_refused(tmp_path: Path, root: Root) -> None:
    empty = tmp_path / "empty.tar"
    with tarfile.open(empty, "w") as made:
        made.addfile(member("etc", tarfile.DIRTYPE, mode=0o755))
    for source in (empty, tmp_path / "absent.tar", tmp_path):
        with pytest.raises((AmemError, OSError)):
            images.unpack(root, str(source))
    (tmp_path / "cut.tar").write_bytes(Path(archive(tmp_path, (member("usr/bin/big"), b"x" * 100_000))).read_bytes()[:50_000])
    with pytest.raises(AmemError, match="cannot be unpacked"):
        images.unpack(root, str(tmp_path / "cut.tar"))
    assert images.images(root) == []
