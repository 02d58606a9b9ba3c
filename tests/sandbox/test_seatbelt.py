"""The Seatbelt profile and command line, as whole values: nobody has run them on a Mac."""

from amem.sandbox import seatbelt
from amem.sandbox.spec import Bind, SandboxSpec

SPEC = SandboxSpec(
    argv=("claude", "-p", "hi"), env=(("AMEM_TOKEN", "tok"), ("HOME", "/h")), workdir="/Volumes/me/tree", cwd="/Volumes/me/tree", home="/h",
    port=7431, memory_dir="/state/inside", binds=(Bind("/opt/claude", "/opt/claude"), Bind("/Volumes/me/more", "/Volumes/me/more", True)),
    hidden=("/Volumes/me/tree/.keys",), protect=(".git/hooks", '.a"b\\c'),
)  # fmt: skip


def test_the_whole_profile() -> None:
    assert (
        seatbelt.profile(SPEC, 4321)
        == """\
(version 1)
(deny default)
(allow process-fork)
(allow process-exec)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup)
(allow ipc-posix-shm)
(allow file-read-metadata)
(allow file-read*
  (subpath "/System")
  (subpath "/Library/Apple")
  (subpath "/usr")
  (subpath "/bin")
  (subpath "/sbin")
  (subpath "/opt/homebrew")
  (subpath "/private/etc/ssl")
  (subpath "/private/var/db/timezone")
  (subpath "/private/var/select")
  (subpath "/state/inside")
  (subpath "/opt/claude")
  (subpath "/Volumes/me/more")
)
(allow file-read* file-write*
  (subpath "/Volumes/me/tree")
  (subpath "/h")
  (subpath "/Volumes/me/more")
)
(allow file-read* file-write* file-ioctl
  (literal "/dev/null")
  (literal "/dev/zero")
  (literal "/dev/random")
  (literal "/dev/urandom")
  (literal "/dev/tty")
)
(deny file-write*
  (subpath "/Volumes/me/tree/.git/hooks")
  (subpath "/Volumes/me/tree/.a\\"b\\\\c")
)
(deny file-write*
  (literal "/Volumes/me/tree/.git")
)
(deny file-read* file-write*
  (subpath "/Volumes/me/tree/.keys")
)
(deny network*)
(allow network-outbound (remote ip "localhost:4321"))
"""
    )


def test_the_command_line_has_no_value_of_the_environment() -> None:
    assert seatbelt.command(SPEC, "/h/p.sb") == ("/usr/bin/sandbox-exec", "-f", "/h/p.sb", "claude", "-p", "hi")


def test_nothing_hidden_and_nothing_protected_leaves_no_empty_rule() -> None:
    text = seatbelt.profile(SPEC._replace(hidden=(), protect=()), 4321)
    assert "(deny file-read* file-write*" not in text and text.count("(deny file-write*") == 1
