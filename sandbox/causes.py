"""Why a step of a sandbox failed, in a sentence that names the cause and the mending command.

A table from (verb, errno) to words; the same words are used by a failed launch and by `amem doctor`. Reads the kernel's settings, changes
nothing.
"""

import errno

from amem.errors import SandboxError
from amem.typed import NamedTuple

APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
CLONE_SWITCH = "/proc/sys/kernel/unprivileged_userns_clone"
MAX_USER = "/proc/sys/user/max_user_namespaces"


class Cause(NamedTuple):
    """A sentence and what to do about it."""

    why: str
    fix: str


CHROOT = Cause("this is a chroot, where the kernel makes no user namespace", "start amem outside of it, or enter it by pivot_root(8)")
FORBIDDEN = Cause(
    "this machine does not let you make user namespaces", "run on a kernel that allows them, not in a chroot, or ask its administrator"
)
BY_APPARMOR = Cause(
    "AppArmor takes every power out of a new user namespace here (kernel.apparmor_restrict_unprivileged_userns=1)",
    "amem doctor --apparmor | sudo tee /etc/apparmor.d/amem >/dev/null && sudo apparmor_parser -r /etc/apparmor.d/amem",
)
BY_PROFILE = Cause(
    "this program runs under the AppArmor profile {label}, which does not let it",
    f"{BY_APPARMOR.fix}; in a container: --security-opt apparmor=unconfined",
)
SWITCHED_OFF = Cause(
    "unprivileged user namespaces are switched off (kernel.unprivileged_userns_clone=0)", "sudo sysctl kernel.unprivileged_userns_clone=1"
)
NONE_ALLOWED = Cause("no user namespaces are allowed (user.max_user_namespaces=0)", "sudo sysctl user.max_user_namespaces=15000")
USED_UP = Cause(
    "the limit of namespaces is used up (user.max_user_namespaces and its like)",
    "end other sandboxes, or: sudo sysctl user.max_user_namespaces=15000",
)
MASKED_PROC = Cause(
    "an outer container masks parts of /proc, so the kernel refuses a new one",
    "podman: --security-opt unmask=ALL; docker: --security-opt systempaths=unconfined",
)
UNDER_WAY = Cause(
    "your programs have too many descriptors under way in sockets, as one session can bring about alone",
    "amem session list --state running, then amem session stop the one that does it",
)
OLD_KERNEL = Cause("this kernel lacks the new mount API (Linux 5.12 or later is needed)", "upgrade the kernel")

_WAY_IN = ("clone", "map", "loopback", "private", "root", "tmpfs", "take")
"""Steps that fail first where user namespaces come without power."""


def cause(verb: str, number: int) -> Cause | None:
    """The known cause of a failed step, reading the kernel's own switches to tell the likes apart; None when there is none."""
    if number == errno.ENOSPC and verb in ("clone", "idmap"):
        return NONE_ALLOWED if read(MAX_USER) == "0" else USED_UP
    if verb == "proc" and number == errno.EPERM:
        return MASKED_PROC
    if number == errno.ETOOMANYREFS:
        return UNDER_WAY
    if number == errno.ENOSYS and verb in ("take", "idmap", "hold"):
        return OLD_KERNEL
    if verb in _WAY_IN and number in (errno.EPERM, errno.EACCES):
        if read(APPARMOR) == "1":
            return BY_APPARMOR
        if read(CLONE_SWITCH) == "0":
            return SWITCHED_OFF
        if verb == "clone" and _in_chroot():
            return CHROOT
        label = confinement()
        if label:
            return BY_PROFILE._replace(why=BY_PROFILE.why.format(label=label))
        return FORBIDDEN if verb in ("clone", "map", "loopback", "private") else None
    return None


def error(verb: str, number: int, why: str, name: str) -> SandboxError:
    """The error of a failed step: what failed, on what, and the cause where it is known."""
    known = cause(verb, number)
    what = f"{name}: {why}" if name else why
    if known is None:
        return SandboxError(verb, what, errno=number)
    return SandboxError(verb, f"{what}: {known.why}", hint=known.fix, errno=number)


def confinement() -> str:
    """The AppArmor profile that confines this process, with its mode; empty for none, or one that allows everything."""
    label = read("/proc/self/attr/apparmor/current")
    return "" if label == "unconfined" or label.endswith(" (unconfined)") else label


def _in_chroot() -> bool:
    """Whether nothing is mounted at what is `/` here. A chroot into a mount of its own cannot be told from a machine."""
    mounts = read("/proc/self/mountinfo").splitlines()
    return bool(mounts) and all(line.split(" ")[4] != "/" for line in mounts)


def read(path: str) -> str:
    """A kernel switch as text; empty where there is none."""
    try:
        with open(path, encoding="ascii") as switch:
            return switch.read().strip()
    except OSError:
        return ""
