"""Programs that execute other words of a line or their input: shells, languages, launchers, subcommands.

If such a program occurs anywhere in a line, as a program or as a word, the words of the line may be code. The
list does not make any other program harmless; it is only used for additional caution.
"""

from __future__ import annotations

SHELLS = (
    "ash bash busybox csh dash elvish fish ksh mksh nu oil osh powershell pwsh rbash sh tcsh toybox xonsh zsh"
)
LANGUAGES = (
    "awk bc bun clojure dc deno ed elixir emacs erl ex expect gawk gdb ghci groovy guile ipython irb "
    "java jjs jq js julia lldb lua luajit m4 mawk mysql nawk node nodejs nvim ocaml osascript perl php "
    "pike psql pypy pypy3 python python2 python3 r racket raku rscript ruby runghc sbcl scala sed "
    "sqlite3 tclsh ts-node tsx vi view vim vimdiff wish"
)
STARTERS = (
    "alias ansible at batch builtin chroot chrt command coproc cpulimit crontab doas dotenv echo entr "
    "env eval exec fakeroot find firejail flock gmake ionice just ltrace make mapfile mosh nc ncat "
    "nice ninja nohup nsenter numactl parallel pkexec printf proot rake readarray rsh runuser "
    "schedtool screen script setarch setpriv setsid socat source ssh start-stop-daemon stdbuf strace "
    "su sudo systemd-run taskset tee time timeout tmux trap unshare valgrind watch watchexec xargs yes"
)
"""Programs that start given programs, or output words that the next program of a pipe may run."""
PACKAGE_RUNNERS = "bunx conda dlx mamba npm npx pipx pixi pnpm pnpx poetry uv uvx yarn"
"""Programs that download a package by its name, and run it."""
SUBCOMMANDS = "bisect difftool exec filter-branch foreach instaweb mergetool rebase run submodule"
"""Subcommands of git, containers and package managers that run the following words, or have a shell do it."""

INTERPRETERS = frozenset(f"{SHELLS} {LANGUAGES} {STARTERS} {PACKAGE_RUNNERS} {SUBCOMMANDS}".split())


def is_interpreter(word: str) -> bool:
    """Whether a word names such a program, also with a folder and a version (``/usr/bin/python3.11``), or
    with a name about running (``xvfb-run``)."""
    name = word.rpartition("/")[2].lower().removesuffix(".exe")
    bare = name.rstrip("0123456789.-")
    return name in INTERPRETERS or bare in INTERPRETERS or bare.endswith(("-run", "-exec"))
