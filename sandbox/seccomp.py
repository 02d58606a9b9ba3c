"""The system-call filter, as a classic BPF program made by hand.

Owns which calls are refused and how. Pure: it returns bytes. The network is bounded by its namespace, never here, so the calls that
runtimes live on (sendto, bind, listen, setsockopt, ...) must not appear in these tables.
seccomp(2), linux/audit.h, linux/bpf_common.h; numbers from the kernel's syscall tables of x86_64 and asm-generic.
"""

import struct

from amem.typed import NamedTuple

_BOTH = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "set_mempolicy_home_node": 450,
    "lsm_set_self_attr": 460,
    "open_tree_attr": 467,
}
_X86_64 = {
    "ptrace": 101,
    "syslog": 103,
    "uselib": 134,
    "personality": 135,
    "vhangup": 153,
    "modify_ldt": 154,
    "pivot_root": 155,
    "_sysctl": 156,
    "chroot": 161,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "iopl": 172,
    "ioperm": 173,
    "create_module": 174,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "nfsservctl": 180,
    "io_setup": 206,  # takes from fs.aio-max-nr, which all programs of the machine share: one session could have all of it (shown)
    "lookup_dcookie": 212,
    "clock_settime": 227,
    "mbind": 237,
    "set_mempolicy": 238,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "migrate_pages": 256,
    "unshare": 272,
    "move_pages": 279,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "clock_adjtime": 305,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
}
_AARCH64 = {
    "io_setup": 0,
    "lookup_dcookie": 18,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "nfsservctl": 42,
    "chroot": 51,
    "vhangup": 58,
    "quotactl": 60,
    "acct": 89,
    "personality": 92,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "clock_settime": 112,
    "syslog": 116,
    "ptrace": 117,
    "reboot": 142,
    "settimeofday": 170,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "swapon": 224,
    "swapoff": 225,
    "mbind": 235,
    "set_mempolicy": 237,
    "migrate_pages": 238,
    "move_pages": 239,
    "perf_event_open": 241,
    "fanotify_init": 262,
    "name_to_handle_at": 264,
    "open_by_handle_at": 265,
    "clock_adjtime": 266,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}

_MODES_BOTH: dict[str, tuple[int, int | None, int]] = {"fchmodat2": (452, None, 2)}
_MODES_X86_64: dict[str, tuple[int, int | None, int]] = {
    "open": (2, 1, 2),
    "creat": (85, None, 1),
    "chmod": (90, None, 1),
    "fchmod": (91, None, 1),
    "mknod": (133, None, 1),
    "openat": (257, 2, 3),
    "mknodat": (259, None, 2),
    "fchmodat": (268, None, 2),
}
_MODES_AARCH64: dict[str, tuple[int, int | None, int]] = {
    "mknodat": (33, None, 2),
    "fchmod": (52, None, 1),
    "fchmodat": (53, None, 2),
    "openat": (56, 2, 3),
}

_BY_ID_X86_64: dict[str, tuple[int, int, int | None]] = {
    "setpriority": (141, 1, 2),
    "sched_setparam": (142, 0, None),
    "sched_setscheduler": (144, 0, None),
    "sched_setaffinity": (203, 0, None),
    "ioprio_set": (251, 1, 3),
    "prlimit64": (302, 0, None),
    "sched_setattr": (314, 0, None),
}
_BY_ID_AARCH64: dict[str, tuple[int, int, int | None]] = {
    "ioprio_set": (30, 1, 3),
    "sched_setparam": (118, 0, None),
    "sched_setscheduler": (119, 0, None),
    "sched_setaffinity": (122, 0, None),
    "setpriority": (140, 1, 2),
    "prlimit64": (261, 0, None),
    "sched_setattr": (274, 0, None),
}


EPERM, ENOMEM, EINVAL, EAFNOSUPPORT, ENOSYS = 1, 12, 22, 97, 38

# The answers are those of a machine where none are set aside; of memfd_create, of a kernel that does not know the flag: Chromium asks with
# all the flags there could be, and aborts for any other answer (156, December 2026).
_HUGE_X86_64: dict[str, tuple[int, int, int, int]] = {
    "mmap": (9, 3, 0x40000, ENOMEM), "shmget": (29, 2, 0o4000, ENOMEM), "memfd_create": (319, 1, 0x4, EINVAL),
}  # fmt: skip
_HUGE_AARCH64: dict[str, tuple[int, int, int, int]] = {
    "shmget": (194, 2, 0o4000, ENOMEM), "mmap": (222, 3, 0x40000, ENOMEM), "memfd_create": (279, 1, 0x4, EINVAL),
}  # fmt: skip


class Arch(NamedTuple):
    """What differs between processors."""

    audit: int
    clone: int
    fcntl: int
    ioctl: int
    socket: int
    socketpair: int
    denied: dict[str, int]
    modes: dict[str, tuple[int, int | None, int]]
    """What gives a file its mode: the number, and which arguments are the flags (None: it has none) and the mode."""
    by_id: dict[str, tuple[int, int, int | None]]
    """What sets the limits, processors or turn of any process of the same user: the number, which argument is the process, and what the
    first one is (None: never) to mean all of a user's."""
    huge: dict[str, tuple[int, int, int, int]]
    """What takes from the huge pages that a machine has set aside: the number, which argument are the flags, the flag, and the answer. They
    stand in no count of a session's memory, and one session could have all that a database or a virtual machine was to get (shown)."""


ARCHES = {
    "x86_64": Arch(0xC000003E, 56, 72, 16, 41, 53, _X86_64 | _BOTH, _MODES_X86_64 | _MODES_BOTH, _BY_ID_X86_64, _HUGE_X86_64),
    "aarch64": Arch(0xC00000B7, 220, 25, 29, 198, 199, _AARCH64 | _BOTH, _MODES_AARCH64 | _MODES_BOTH, _BY_ID_AARCH64, _HUGE_AARCH64),
}

TRACING = ("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "personality")
"""What `allow_ptrace` gives back. A debugger starts its program at the same addresses each time, by personality(2)."""

SET_ID = 0o6000
"""S_ISUID and S_ISGID. On the host's disk such a file is its owner's powers for whoever runs it, and a mount can only void it inside."""
CREATES = 0o100 | 0o20000000
"""O_CREAT and the bit of O_TMPFILE: with neither the mode of an open means nothing."""
CLONE3 = 435
OPENAT2 = 437
"""Its mode stands in memory, where a filter cannot look: programs fall back to openat, as they do on older kernels."""
NEWEST = 470
"""The last call these tables know (listns, Linux 6.19). A later one does not exist inside until somebody has looked at it."""

INIT = 1
"""PID 1 of the sandbox, which looks after the session's limits and ends it with its launcher: made to wait behind everything inside, or
without a descriptor left, it could do neither (shown)."""

NEW_NAMESPACES = 0x7E020000 | 0x80
TTY_IOCTLS = (0x540C, 0x5412, 0x541C, 0x541D, 0x5423)
"""TIOCEXCL, TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD: they put text into, take over, or close for good the terminal that the session
shares with its owner."""
CONSOLE_IOCTLS = (0x4B00, 0x5600)
"""First of 256 each: what sets the keyboard, the screen and the switching of a Linux console, where `reset` would not bring them back."""
LEASES = (1024, 1040)
"""F_SETLEASE, F_SETDELEG. Whoever opens a file that is leased waits for the lease's holder, up to 45 seconds each time: one session would
hold up each program outside that reads any file of its owner's which is shown inside, read-only or not (shown)."""
FAMILIES = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6. AF_VSOCK, for one, is not bounded by a network namespace before Linux 7.0."""
NETLINK = 16

ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NR, _ARCH, _ARG0, _ARG1, _ARG2 = 0, 4, 16, 24, 32
_ARG_BYTES = 8
_LOAD, _EQUAL, _ABOVE, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06

_Step = tuple[int, int, int, int]


_made: dict[tuple[str, bool], bytes] = {}
"""A stage makes the usual one before it knows what is asked for."""


def program(machine: str, allow_ptrace: bool = False) -> bytes:
    """The filter for `machine` as an array of `struct sock_filter`. Raises KeyError for a processor without a table."""
    if (machine, allow_ptrace) not in _made:
        _made[machine, allow_ptrace] = _assembled(machine, allow_ptrace)
    return _made[machine, allow_ptrace]


def _assembled(machine: str, allow_ptrace: bool) -> bytes:
    arch = ARCHES[machine]
    numbers = sorted(number for name, number in arch.denied.items() if not (allow_ptrace and name in TRACING))
    steps: list[_Step] = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, arch.audit), _give(KILL), (_LOAD, 0, 0, _NR)]
    # One comparison covers x32 and calls newer than the tables.
    steps += [(_ABOVE, 0, 1, NEWEST + 1), _give(ERRNO | ENOSYS), (_EQUAL, 1, 0, CLONE3), (_EQUAL, 0, 1, OPENAT2), _give(ERRNO | ENOSYS)]
    blocks = [(number, _mode(flags, mode)) for number, flags, mode in arch.modes.values()]
    blocks += [(number, _spare_init(process, all_of)) for number, process, all_of in arch.by_id.values()]
    blocks += [(number, _huge(flags, flag, answer)) for number, flags, flag, answer in arch.huge.values()]
    blocks += [(arch.clone, _clone()), (arch.fcntl, _fcntl()), (arch.ioctl, _ioctl())]
    for number, block in (*blocks, (arch.socket, _family()), (arch.socketpair, _family())):
        steps += [(_EQUAL, 0, len(block), number), *block]
    steps += _search(numbers)
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _give(value: int) -> _Step:
    return (_RETURN, 0, 0, value)


def _clone() -> list[_Step]:
    return [(_LOAD, 0, 0, _ARG0), (_ANY_BIT, 0, 1, NEW_NAMESPACES), _give(ERRNO | EPERM), _give(ALLOW)]


def _ioctl() -> list[_Step]:
    # The kernel takes the request as 32 bits; a filter that compared all 64 could be passed with a high bit set (CVE-2019-10063).
    console = [step for first in CONSOLE_IOCTLS for step in ((_ABOVE, 0, 2, first), (_ABOVE, 1, 0, first + 256), _give(ERRNO | EPERM))]
    return [(_LOAD, 0, 0, _ARG1), *console, *_one_of(TTY_IOCTLS)]


def _fcntl() -> list[_Step]:
    return [(_LOAD, 0, 0, _ARG1), *_one_of(LEASES)]


def _one_of(refused: tuple[int, ...]) -> list[_Step]:
    asks = [(_EQUAL, len(refused) - at, 0, value) for at, value in enumerate(refused)]
    return [*asks, _give(ALLOW), _give(ERRNO | EPERM)]


def _mode(flags: int | None, mode: int) -> list[_Step]:
    made = [] if flags is None else [(_LOAD, 0, 0, _ARG0 + flags * _ARG_BYTES), (_ANY_BIT, 1, 0, CREATES), _give(ALLOW)]
    return [*made, (_LOAD, 0, 0, _ARG0 + mode * _ARG_BYTES), (_ANY_BIT, 0, 1, SET_ID), _give(ERRNO | EPERM), _give(ALLOW)]


def _spare_init(process: int, all_of: int | None) -> list[_Step]:
    of_all = [] if all_of is None else [(_LOAD, 0, 0, _ARG0), (_EQUAL, 3, 0, all_of)]
    return [*of_all, (_LOAD, 0, 0, _ARG0 + process * _ARG_BYTES), (_EQUAL, 1, 0, INIT), _give(ALLOW), _give(ERRNO | EPERM)]


def _huge(flags: int, flag: int, answer: int) -> list[_Step]:
    return [(_LOAD, 0, 0, _ARG0 + flags * _ARG_BYTES), (_ANY_BIT, 0, 1, flag), _give(ERRNO | answer), _give(ALLOW)]


def _family() -> list[_Step]:
    asks = [(_EQUAL, len(FAMILIES) - at + 2, 0, family) for at, family in enumerate(FAMILIES)]
    # Netlink with protocol 0 (routes and addresses) is how getifaddrs(3) works.
    return [
        (_LOAD, 0, 0, _ARG0),
        *asks,
        (_EQUAL, 0, 3, NETLINK),
        (_LOAD, 0, 0, _ARG2),
        (_EQUAL, 0, 1, 0),
        _give(ALLOW),
        _give(ERRNO | EAFNOSUPPORT),
    ]


def _search(numbers: list[int]) -> list[_Step]:
    """A binary search: refuse the numbers, allow any other."""
    if len(numbers) <= 4:
        return _one_of(tuple(numbers))
    middle = len(numbers) // 2
    low, high = _search(numbers[:middle]), _search(numbers[middle:])
    return [(_ABOVE, len(low), 0, numbers[middle]), *low, *high]
