"""A filter of system calls for a process that runs what strangers wrote (Linux, seccomp). From then on it may
compute, read and write what is open, sleep and end. Every other call fails with EPERM: files by their names,
sockets, processes and threads, signals, limits and memory of other processes.

It lists what is allowed, so what a newer kernel brings is refused, too. Imports the standard library alone,
for programs that know nothing of fastrpc. Costs 10 ms, which is importing ctypes.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

ALLOWED = {
    # name: number on x86-64, and on processors whose numbers are the generic ones; 0 where there is none
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
PROCESSORS = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1), "riscv64": (0xC00000F3, 1)}
"""AUDIT_ARCH of <linux/audit.h>, and which of the numbers hold."""
LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 0x06
REFUSE, ALLOW = 0x00050000 | 1, 0x7FFF0000
"""Of <linux/seccomp.h>: fail with errno 1 (EPERM), and go on."""
CALL_AT, PROCESSOR_AT = 0, 4
NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2


def allow_computing_alone() -> None:
    """Have the kernel refuse everything else to this thread for the rest of its life. On other systems than
    Linux nothing happens. Raises OSError where the kernel takes no filter, and for a processor whose numbers
    are not known."""
    if sys.platform != "linux":
        return
    code = program(os.uname().machine)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)
    kept = ctypes.create_string_buffer(code, len(code))
    given = struct.pack("@HP", len(code) // 8, ctypes.addressof(kept))
    place = ctypes.create_string_buffer(given, len(given))
    for arguments in ((NO_NEW_PRIVILEGES, 1, 0), (SET_SECCOMP, FILTER, ctypes.addressof(place))):
        if prctl(*arguments, 0, 0):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def program(processor: str) -> bytes:
    """Return the filter as classic BPF: instructions of eight bytes. Raises OSError."""
    if processor not in PROCESSORS:
        raise OSError(f"it is not known for the processor {processor}")
    audited, column = PROCESSORS[processor]
    numbers = sorted({each[column] for each in ALLOWED.values() if column == 0 or each[column]})
    found = [(LOAD, 0, 0, PROCESSOR_AT), (IF_EQUAL, 0, len(numbers) + 1, audited), (LOAD, 0, 0, CALL_AT)]
    found += [(IF_EQUAL, len(numbers) - at, 0, number) for at, number in enumerate(numbers)]
    found += [(RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", *each) for each in found)
