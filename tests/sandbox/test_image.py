"""A sandbox that shows an unpacked image's programs, as root and as an ordinary user."""

from tests.sandbox.images import lay_out
from tests.sandbox.launching import Place

SPEC = {"memory_dir": None}


def test_programs_and_etc_are_the_images_and_nothing_of_the_hosts_is_left(here: Place) -> None:
    image = lay_out(here.base / "image")
    (image / "usr/bin/only-here").symlink_to("sh")
    here.own()
    script = "cat /etc/os-release /etc/timezone /etc/ssl/certs/ca.pem; ls /usr /usr/bin; id -u; readlink /bin /etc/os-release"
    done = here.launch("sh", "-c", script, spec={"image": str(image)})
    assert done.get("code") == 0, done
    words = done["out"].split()
    assert done["out"].startswith('PRETTY_NAME="a small image"\nEtc/UTC\na certificate\n')
    assert words[words.index("certificate") + 1 :] == [
        "/usr:", "bin", "lib", "/usr/bin:", *sorted(("cat", "env", "id", "ls", "only-here", "readlink", "sh", "sleep", "touch")),
        "1000", "usr/bin", "/usr/lib/os-release",
    ]  # fmt: skip


def test_an_image_is_read_only_whoever_owns_its_files(here: Place) -> None:
    image = lay_out(here.base / "image")
    here.own()
    script = "touch /usr/bin/x /etc/x /etc/ssl/certs/x /lib/x; echo poison > /usr/bin/sh; ls /usr/bin; echo done"
    done = here.launch("sh", "-c", script, spec={"image": str(image)})
    assert done["code"] == 0 and done["out"].endswith("done\n") and done["err"].count("Read-only file system") == 5
    assert not list(image.rglob("x"))


def test_the_tree_and_the_home_are_writable_as_ever(here: Place) -> None:
    image = lay_out(here.base / "image")
    here.own()
    done = here.launch("sh", "-c", "echo a > made; echo b > $HOME/made", spec={"image": str(image)})
    assert done["code"] == 0, done
    assert (here.work / "made").read_text() == "a\n" and (here.home / "made").read_text() == "b\n"
