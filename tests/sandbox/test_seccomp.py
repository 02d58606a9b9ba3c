"""The filter, run by a small BPF interpreter over every number, on both processors; numbers against the kernel's own headers."""

import errno
import re
import struct
from pathlib import Path

import pytest

from amem.sandbox import seccomp

ALLOW = "allow"
KILL = "kill"


def run(program: bytes, arch: int, number: int, *arguments: int) -> str:
    """What the kernel would answer."""
    steps = list(struct.iter_unpack("=HBBI", program))
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, arch, 0, *(value & 2**64 - 1 for value in (*arguments, *[0] * 6)[:6]))
    at, accumulator = 0, 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case 0x06:
                if value == 0x7FFF0000:
                    return ALLOW
                return KILL if value == 0x80000000 else errno.errorcode[value & 0xFFFF]
            case _:
                raise AssertionError(f"an instruction the filter does not use: {code:#x}")


@pytest.fixture(params=sorted(seccomp.ARCHES))
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("allow_ptrace", [False, True])
def test_every_number_has_the_answer_of_the_tables(machine: str, allow_ptrace: bool) -> None:
    arch = seccomp.ARCHES[machine]
    program = seccomp.program(machine, allow_ptrace)
    denied = {number for name, number in arch.denied.items() if not (allow_ptrace and name in seccomp.TRACING)}
    judged_by_arguments = {arch.clone, arch.fcntl, arch.ioctl, arch.socket, arch.socketpair}
    for number in range(600):
        if number in judged_by_arguments:
            continue
        wanted = "ENOSYS" if number in (435, 437) or number > seccomp.NEWEST else "EPERM" if number in denied else ALLOW
        assert run(program, arch.audit, number) == wanted, number


def test_another_architecture_is_killed(machine: str) -> None:
    for foreign in (0x40000003, 0x40000028, 0xC00000B7 if machine == "x86_64" else 0xC000003E, 0):
        assert run(seccomp.program(machine), foreign, 1) == KILL


def test_x32_calls_do_not_exist() -> None:
    for number in (0, 41, 101, 470):
        assert run(seccomp.program("x86_64"), 0xC000003E, number | 0x40000000) == "ENOSYS"


def test_clone_without_namespaces_only(machine: str) -> None:
    arch, program = seccomp.ARCHES[machine], seccomp.program(machine)
    threads = 0x3D0F00  # what pthread_create(3) asks for
    assert run(program, arch.audit, arch.clone, threads) == ALLOW
    assert run(program, arch.audit, arch.clone, 17) == ALLOW
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x00000080):
        assert run(program, arch.audit, arch.clone, flag | 17) == "EPERM"
        assert run(program, arch.audit, arch.clone, flag | 17 | 1 << 40) == "EPERM"


@pytest.mark.parametrize("request_number", [0x540C, 0x5412, 0x541C, 0x541D, 0x5423])
def test_terminal_takeover_is_refused_whatever_the_high_bits(machine: str, request_number: int) -> None:
    arch, program = seccomp.ARCHES[machine], seccomp.program(machine)
    for high in (0, 1 << 32, 0xFFFFFFFF << 32):
        assert run(program, arch.audit, arch.ioctl, 0, request_number | high) == "EPERM"
    for usual in (0x5401, 0x5402, 0x5410, 0x5413, 0x5421, 0x541B):
        assert run(program, arch.audit, arch.ioctl, 0, usual) == ALLOW


def test_a_console_is_not_set(machine: str) -> None:
    arch, program = seccomp.ARCHES[machine], seccomp.program(machine)
    for asked in (0x4B00, 0x4B3A, 0x4B45, 0x4B4B, 0x4BFF, 0x5600, 0x5602, 0x560A, 0x56FF, 0x4B45 | 1 << 32):
        assert run(program, arch.audit, arch.ioctl, 0, asked) == "EPERM", hex(asked)
    for usual in (0x4AFF, 0x4C00, 0x55FF, 0x5700, 0x80045600, 0xC0684B01):
        assert run(program, arch.audit, arch.ioctl, 0, usual) == ALLOW, hex(usual)


def test_no_lease_is_taken(machine: str) -> None:
    arch, program = seccomp.ARCHES[machine], seccomp.program(machine)
    for asked in (1024, 1040, 1024 | 1 << 32):
        assert run(program, arch.audit, arch.fcntl, 0, asked) == "EPERM", asked
    for usual in (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1025, 1030, 1031, 1033):
        assert run(program, arch.audit, arch.fcntl, 0, usual) == ALLOW, usual


def test_socket_families(machine: str) -> None:
    arch, program = seccomp.ARCHES[machine], seccomp.program(machine)
    for number in (arch.socket, arch.socketpair):
        for family in range(60):
            for protocol in (0, 9):
                wanted = ALLOW if family in (1, 2, 10) or (family, protocol) == (16, 0) else "EAFNOSUPPORT"
                assert run(program, arch.audit, number, family, 1, protocol) == wanted, family
        assert run(program, arch.audit, number, 40 | 1 << 32) == "EAFNOSUPPORT"


def test_no_file_gets_a_set_id_bit_by_any_call(machine: str) -> None:
    arch, program = seccomp.ARCHES[machine], seccomp.program(machine)
    for name, (number, flags, mode) in arch.modes.items():
        arguments = [0] * 6
        for asked in (0o4755, 0o2755, 0o6000, 0o100644 | 0o4000, 0o4755 | 1 << 40):
            arguments[mode] = asked
            for how in (0,) if flags is None else (0o100, 0o102 | 0o2000000, 0o20200000, 0o100 | 1 << 40):
                arguments[0 if flags is None else flags] = how
                assert run(program, arch.audit, number, *arguments) == "EPERM", (name, oct(asked), oct(how))
        if flags is not None:  # the mode is whatever lay in the register
            arguments[flags] = 0o2000000
            assert run(program, arch.audit, number, *arguments) == ALLOW, name
            arguments[flags] = 0o102
        for asked in (0o644, 0o1777, 0o100755):
            arguments[mode] = asked
            assert run(program, arch.audit, number, *arguments) == ALLOW, (name, oct(asked))


def test_pid_1_cannot_be_made_to_wait(machine: str) -> None:
    arch, program = seccomp.ARCHES[machine], seccomp.program(machine)
    for name, (number, process, all_of) in arch.by_id.items():
        arguments = [0] * 6
        for other in (0, 2, 4242, -1):
            arguments[process] = other
            assert run(program, arch.audit, number, *arguments) == ALLOW, (name, other)
        for one in (1, 1 | 1 << 32):
            arguments[process] = one
            assert run(program, arch.audit, number, *arguments) == "EPERM", name
        if all_of is not None:
            assert run(program, arch.audit, number, all_of, 0) == "EPERM", name


def test_no_huge_page_is_taken_by_any_call(machine: str) -> None:
    arch, program = seccomp.ARCHES[machine], seccomp.program(machine)
    assert set(arch.huge) == {"mmap", "memfd_create", "shmget"}
    for name, (number, flags, flag, _) in arch.huge.items():
        arguments = [0] * 6
        for asked in (flag, flag | 0x22, flag | 21 << 26, flag | 1 << 40):
            arguments[flags] = asked
            assert run(program, arch.audit, number, *arguments) == ("EINVAL" if name == "memfd_create" else "ENOMEM"), (name, hex(asked))
        for asked in (0, 0x1, 0x2, 0o600, 0o1600, 0x22, 0x4022, 0x20022):
            arguments[flags] = asked
            assert run(program, arch.audit, number, *arguments) == ALLOW, (name, hex(asked))


LIFE = frozenset(
    {
        "read",
        "write",
        "openat",
        "connect",
        "accept4",
        "bind",
        "listen",
        "sendto",
        "recvfrom",
        "sendmsg",
        "recvmsg",
        "setsockopt",
        "getsockopt",
    }
    | {"execve", "mmap", "futex", "epoll_wait", "epoll_pwait", "ppoll", "pidfd_open", "memfd_create", "prctl", "seccomp", "kill", "wait4"}
)


def test_calls_that_runtimes_live_on_are_never_refused(machine: str) -> None:
    assert not LIFE & set(seccomp.ARCHES[machine].denied)


HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h",),
    "aarch64": ("/usr/include/aarch64-linux-gnu/asm/unistd_64.h", "/usr/include/asm-generic/unistd.h"),
}
"""Debian's headers have every processor's since Linux 6.12."""


def test_numbers_agree_with_the_kernel_headers(machine: str) -> None:
    header = next((path for path in map(Path, HEADERS[machine]) if path.exists()), None)
    if header is None:
        pytest.skip(f"{' or '.join(HEADERS[machine])} is not installed")
    text = header.read_text()
    known = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    arch = seccomp.ARCHES[machine]
    ours = {**arch.denied, "clone": arch.clone, "fcntl": arch.fcntl, "ioctl": arch.ioctl, "socket": arch.socket, "clone3": 435}
    ours |= {"socketpair": arch.socketpair} | {name: number for name, (number, *_) in arch.huge.items()}
    ours |= {name: number for name, (number, _, _) in (arch.modes | arch.by_id).items()} | {"openat2": seccomp.OPENAT2}
    wrong = {name: (number, known[name]) for name, number in ours.items() if name in known and known[name] != number}
    assert wrong == {}
    assert len([name for name in ours if name in known]) > 40
