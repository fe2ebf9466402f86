"""A filter of system calls for a process that reads or runs untrusted input (Linux, seccomp). Every thread
may then compute, read and write open files, sleep and end, and make the calls of further lists. Every other
call fails with EPERM: opening files by name, sockets, processes, signals, limits and memory of other
processes.

The filter lists what is allowed, so it also refuses calls that a newer kernel adds. Imports the standard
library alone, for programs that import nothing of fastrpc. Costs 10 ms, the time to import ctypes.
"""

from __future__ import annotations

import os
import struct
import sys

try:
    import ctypes
except ImportError:  # built without libffi
    ctypes = None  # type: ignore[assignment]

LOAD, IF_EQUAL, IF_ANY, RETURN = 0x20, 0x15, 0x45, 0x06
REFUSE, ALLOW = 0x00050000 | 1, 0x7FFF0000
UNKNOWN = 0x00050000 | 38
"""Of <linux/seccomp.h>: fail with errno 1 (EPERM), allow, fail as in a kernel without the call (ENOSYS)."""
NUMBER_AT, PROCESSOR_AT, ARGUMENTS_AT = 0, 4, 16
NO_NEW_PRIVILEGES, SET_FILTER, ALL_THREADS = 38, 1, 1
PROCESSORS = {
    "x86_64": (0xC000003E, 0, 317),
    "aarch64": (0xC00000B7, 1, 277),
    "riscv64": (0xC00000F3, 1, 277),
}
"""AUDIT_ARCH of <linux/audit.h>, which selects the numbers, and the number of seccomp itself."""

# name: number on x86-64, and on processors with the generic numbers; 0 if it does not exist
COMPUTING = {
    "arch_prctl": (158, 0),
    "brk": (12, 214),
    "clock_getres": (229, 114),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "close": (3, 57),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "fstat": (5, 80),
    "futex": (202, 98),
    "getegid": (108, 177),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getpid": (39, 172),
    "getrandom": (318, 278),
    "getrusage": (98, 165),
    "gettid": (186, 178),
    "gettimeofday": (96, 169),
    "getuid": (102, 174),
    "lseek": (8, 62),
    "madvise": (28, 233),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "munmap": (11, 215),
    "nanosleep": (35, 101),
    "pselect6": (270, 72),
    "read": (0, 63),
    "restart_syscall": (219, 128),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "select": (23, 0),
    "sigaltstack": (131, 132),
    "time": (201, 0),
    "times": (100, 153),
    "write": (1, 64),
    "writev": (20, 66),
}
NATIVE = {  # what libraries in C and Rust call, and an event loop: threads, waiting, ending itself
    "clone": (56, 220),
    "epoll_ctl": (233, 21),
    "epoll_pwait": (281, 22),
    "epoll_wait": (232, 0),
    "getcwd": (79, 17),
    "membarrier": (324, 283),
    "poll": (7, 0),
    "ppoll": (271, 73),
    "prctl": (157, 167),
    "recvfrom": (45, 207),
    "rseq": (334, 293),
    "sched_getaffinity": (204, 123),
    "sendto": (44, 206),
    "set_robust_list": (273, 99),
    "sysinfo": (99, 179),
    "tgkill": (234, 131),
    "uname": (63, 160),
}
DESCRIPTORS = {  # receiving files over a socket, and limiting the processor time of each
    "prlimit64": (302, 261),
    "recvmsg": (47, 212),
    "setrlimit": (160, 164),
}
FILES = {  # reading files by their names
    "access": (21, 0),
    "faccessat": (269, 48),
    "getdents64": (217, 61),
    "lstat": (6, 0),
    "newfstatat": (262, 79),
    "open": (2, 0),
    "openat": (257, 56),
    "pread64": (17, 67),
    "readlink": (89, 0),
    "readlinkat": (267, 78),
    "stat": (4, 0),
    "statx": (332, 291),
}
CLONE_THREAD, WRITING, SET_NAME = 0x10000, os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC, 15
CONDITIONS = {  # of an allowed call: which argument, the test, a value, and what applies if it is true
    "clone": (0, IF_ANY, CLONE_THREAD, ALLOW),
    "open": (1, IF_ANY, WRITING, REFUSE),
    "openat": (2, IF_ANY, WRITING, REFUSE),
    "prctl": (0, IF_EQUAL, SET_NAME, ALLOW),
    "prlimit64": (0, IF_EQUAL, 0, ALLOW),  # of this process
    "tgkill": (0, IF_EQUAL, os.getpid(), ALLOW),
}
CLONE3 = 435  # its flags are in memory, which the filter cannot read; without it libraries call clone


def confine(*more: dict[str, tuple[int, int]]) -> None:
    """Have the kernel refuse all threads of this process, for the rest of its life, everything but computing
    and the listed calls. Does nothing on systems other than Linux. Raises OSError if the kernel does not
    accept the filter, and for a processor whose numbers are unknown."""
    if sys.platform != "linux":
        return
    processor = os.uname().machine
    code = program(processor, COMPUTING, *more)
    if ctypes is None:
        raise OSError("this Python has no ctypes")
    library = ctypes.CDLL(None, use_errno=True)
    kept = ctypes.create_string_buffer(code, len(code))
    given = struct.pack("@HP", len(code) // 8, ctypes.addressof(kept))
    number = PROCESSORS[processor][2]
    if library.prctl(NO_NEW_PRIVILEGES, *map(ctypes.c_ulong, (1, 0, 0, 0))):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if left := library.syscall(*map(ctypes.c_long, (number, SET_FILTER, ALL_THREADS)), given):
        raise OSError(ctypes.get_errno(), f"thread {left}" if left > 0 else os.strerror(ctypes.get_errno()))


def confine_if_possible(*more: dict[str, tuple[int, int]]) -> None:
    """Do the same, for a process whose limits must suffice where the kernel takes no filter."""
    try:
        confine(*more)
    except OSError:
        pass


def program(processor: str, *lists: dict[str, tuple[int, int]]) -> bytes:
    """Return the filter as classic BPF: instructions of eight bytes. Raises OSError."""
    if processor not in PROCESSORS:
        raise OSError(f"it is not known for the processor {processor}")
    audited, column, _ = PROCESSORS[processor]
    numbers = {
        name: each[column] for calls in lists for name, each in calls.items() if column == 0 or each[column]
    }
    plain = sorted(number for name, number in numbers.items() if name not in CONDITIONS)
    found = [
        (LOAD, 0, 0, PROCESSOR_AT),
        (IF_EQUAL, 1, 0, audited),
        (RETURN, 0, 0, REFUSE),
        (LOAD, 0, 0, NUMBER_AT),
    ]
    for name in sorted(numbers.keys() & CONDITIONS.keys()):
        argument, test, value, answer = CONDITIONS[name]
        found += [(IF_EQUAL, 0, 4, numbers[name]), (LOAD, 0, 0, ARGUMENTS_AT + 8 * argument)]
        found += [(test, 0, 1, value), (RETURN, 0, 0, answer), (RETURN, 0, 0, REFUSE + ALLOW - answer)]
    if "clone" in numbers:
        found += [(IF_EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, UNKNOWN)]
    found += [(IF_EQUAL, len(plain) - at, 0, number) for at, number in enumerate(plain)]
    found += [(RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", *each) for each in found)
