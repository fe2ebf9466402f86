"""The subcommands of git that only read, each with the options with which they do.

Left out are options that write (``--output``), run a program (``--ext-diff``, ``--textconv``, ``grep -O``,
formats with signatures, which gpg checks) or a pager, and all options before the subcommand (``-c``, ``-C``,
``--git-dir``, ``--exec-path``) except ``--no-pager`` and ``--no-optional-locks``.

git also reads the configuration of the repository, which may name programs (``core.fsmonitor``,
``diff.external``). A caller who can write it can have git run them: see docs/guard.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastrpc.guard.shell.programs import DIGITS, Program, names


def subcommand(letters: str = "", valued: str = "", long: str = "", operands: int | None = None) -> Program:
    """Return a subcommand; `long`: names, with blanks between. ``--help`` would run man."""
    return Program(letters, valued, names(long), operands)


DIFF_NAMES = (
    "abbrev binary cached check color color-moved color-words compact-summary cumulative diff-algorithm "
    "diff-filter dirstat dst-prefix exit-code find-copies find-renames full-index function-context histogram "
    "ignore-all-space ignore-blank-lines ignore-matching-lines ignore-space-at-eol ignore-space-change "
    "ignore-submodules inter-hunk-context merge-base minimal name-only name-status no-color no-ext-diff "
    "no-patch no-prefix no-renames no-textconv numstat patch patch-with-stat patience pickaxe-all "
    "pickaxe-regex quiet raw relative shortstat src-prefix staged stat stat-count stat-graph-width "
    "stat-name-width stat-width summary text unified word-diff word-diff-regex"
)
LOG_NAMES = (
    "abbrev-commit after all all-match ancestry-path author author-date-order before boundary branches "
    "cherry cherry-mark cherry-pick children committer count date date-order decorate decorate-refs "
    "decorate-refs-exclude diff-merges encoding exclude extended-regexp first-parent fixed-strings follow "
    "format full-history glob graph grep invert-grep left-only left-right log-size max-age max-count "
    "max-parents merges min-age min-parents no-abbrev-commit no-decorate no-mailmap no-merges no-notes "
    "no-walk not notes oneline parents perl-regexp pretty regexp-ignore-case relative-date remotes reverse "
    "right-only show-pulls simplify-by-decoration since skip source tags topo-order until use-mailmap "
    "walk-reflogs"
)
REFERENCE_NAMES = (
    "abbrev column color contains format ignore-case list merged no-abbrev no-color no-column no-contains "
    "no-merged points-at sort"
)
LOG = subcommand("aBbcEFgimPpqRrstuwWz" + DIGITS, "CGLMnSU", f"{DIFF_NAMES} {LOG_NAMES}")
SUBCOMMANDS = {
    "blame": subcommand(
        "bceflnpstw",
        "CLM",
        "abbrev color-by-age color-lines date first-parent ignore-rev line-porcelain porcelain reverse root "
        "show-email show-name show-number show-stats since",
    ),
    "cat-file": subcommand("epst"),
    "describe": subcommand(
        long="abbrev all always candidates contains dirty exact-match exclude first-parent long match tags"
    ),
    "grep": subcommand(
        "aceEFGhHiIlLnopPqrvwWz" + DIGITS,
        "ABCm",
        "after-context all-match and basic-regexp before-context break cached color column context count "
        "exclude-standard extended-regexp files-with-matches files-without-match fixed-strings full-name "
        "function-context heading ignore-case invert-match line-number max-count max-depth name-only "
        "no-color no-index not null only-matching or perl-regexp quiet recursive show-function text threads "
        "untracked word-regexp",
    ),
    "ls-files": subcommand(
        "cdfikmostuvz",
        "x",
        "abbrev cached deduplicate deleted directory eol error-unmatch exclude exclude-standard full-name "
        "ignored killed modified no-empty-directory others stage unmerged",
    ),
    "ls-tree": subcommand("dlrtz", long="abbrev full-name full-tree long name-only name-status"),
    "merge-base": subcommand("a", long="all independent is-ancestor octopus"),
    "remote": subcommand("v", long="verbose", operands=0),
    "rev-parse": subcommand(
        "q",
        long=(
            "abbrev-ref absolute-git-dir all branches git-common-dir git-dir git-path is-bare-repository "
            "is-inside-git-dir is-inside-work-tree path-format quiet remotes short show-cdup show-prefix "
            "show-superproject-working-tree show-toplevel symbolic symbolic-full-name tags verify"
        ),
    ),
    "shortlog": subcommand(
        "cens", long="all author committer email format group no-merges numbered since summary until"
    ),
    "status": subcommand(
        "bsvz",
        "u",
        "ahead-behind branch column find-renames ignore-submodules ignored long no-ahead-behind no-column "
        "no-renames porcelain renames short show-stash untracked-files verbose",
    ),
    "branch": subcommand("alrv", long=f"{REFERENCE_NAMES} all remotes show-current verbose"),
    "diff": subcommand("aBbcpqRrstuwWz" + DIGITS, "CGlMSU", DIFF_NAMES),
    "tag": subcommand("iln" + DIGITS, long=REFERENCE_NAMES),
    **dict.fromkeys(("log", "rev-list", "show"), LOG),
}
LISTING = {"branch": ("--list",), "tag": ("--list", "-l")}
"""Subcommands that create what their operands name, unless one of these options makes them list it. The
option must be first: elsewhere it may be the value of another one (``--format --list``). ``-l`` of ``git
branch`` had another meaning in older versions."""
BEFORE_SUBCOMMANDS = ("--no-pager", "--no-optional-locks")


def only_reads(words: Sequence[str]) -> bool:
    """Whether git with these words after its name only reads."""
    if words and words[0] in BEFORE_SUBCOMMANDS:
        return only_reads(words[1:])
    if list(words) == ["--version"]:
        return True
    name, options = (words[0] if words else ""), words[1:]
    known = SUBCOMMANDS.get(name)
    # Not if a word may be a format with one of gpg's placeholders, as ``%G?`` and ``%(signature)``.
    if known is None or any("%" in each and ("G" in each or "signature" in each) for each in options):
        return False
    if name in LISTING and not (options and options[0] in LISTING[name]):
        known = known._replace(operands=0)
    return known.allows(options)
