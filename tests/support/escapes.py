"""What a process might try that has been taken over by what it reads: run inside the workers that read
what strangers wrote, by the tests that say how little of it works. ATTEMPTS is the beginning of a program;
`reached` says what works, `_tried` in one thread alone."""

ONE_THREAD = """
import ctypes as _ctypes, os as _os, socket as _socket, subprocess as _subprocess, threading as _threading
_parent = _os.getppid()
_library = _ctypes.CDLL(None, use_errno=True)
_on_intel = _os.uname().machine == "x86_64"

def _system(on_intel, elsewhere, *arguments):
    if _library.syscall(on_intel if _on_intel else elsewhere, *arguments) == -1:
        raise OSError(_ctypes.get_errno(), "refused")

def _forked():
    if not _os.fork():
        _os._exit(0)

_TRIED = {
    "read a file": lambda: _os.close(_os.open("/etc/passwd", _os.O_RDONLY)),
    "write a file": lambda: _os.close(_os.open("/tmp", _os.O_TMPFILE | _os.O_RDWR)),
    "make a file": lambda: _os.close(_os.open("/dev/shm/made", _os.O_CREAT | _os.O_WRONLY)),
    "truncate a file": lambda: _os.close(_os.open("/dev/null", _os.O_TRUNC)),
    "remove a file": lambda: _os.remove("/nowhere/at/all"),
    "make a folder": lambda: _os.mkdir("/nowhere/at/all"),
    "socket": lambda: _socket.socket().close(),
    "local socket": lambda: _socket.socket(_socket.AF_UNIX).close(),
    "fork": _forked,
    "spawn": lambda: _subprocess.run(["/bin/true"]),
    "exec": lambda: _os.execv("/nowhere/at/all", ["all"]),
    "signal": lambda: _os.kill(_parent, 0),
    "abort of another": lambda: _system(234, 131, _parent, _parent, 0),
    "trace": lambda: _system(101, 117, 0x4206, _parent, 0, 0),
    "memory of another": lambda: _system(310, 270, _parent, 0, 0, 0, 0, 0),
    "handle of another": lambda: _system(434, 434, _parent, 0),
    "io_uring": lambda: _system(425, 425, 1, 0),
    "limits of another": lambda: _system(302, 261, _parent, 0, 0, 0),
    "namespaces": lambda: _system(272, 97, 0x10000000),
}

def _tried():
    found = []
    for name, attempt in _TRIED.items():
        try:
            attempt()
        except PermissionError:
            continue
        except OSError as error:
            found.append(f"{name} (errno {error.errno})")
        else:
            found.append(name)
    return ", ".join(found) or "nothing"
"""

ATTEMPTS = (
    ONE_THREAD
    + '''
def reached():
    """What works here, and in a thread that was made before and one that is made now."""
    found = [_tried()]
    _early.set()
    _early_done.wait()
    late = _threading.Thread(target=lambda: found.append(_tried()))
    late.start()
    late.join()
    found += _of_early
    return found[0] if found == [found[0]] * 3 else "different things by thread: " + " | ".join(found)

_early, _early_done, _of_early = _threading.Event(), _threading.Event(), []

def _be_early():
    _early.wait()
    _of_early.append(_tried())
    _early_done.set()

_threading.Thread(target=_be_early, daemon=True).start()
'''
)
