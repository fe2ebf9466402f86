"""The programs that only read, each with the options with which they do.

What is not listed is not known to be harmless. Options that write (``sort -o``), run a program (``rg --pre``)
or never end (``tail -f``) are left out, as are programs with too many of these (awk, less, xargs, env). Long
options must be complete: GNU accepts prefixes, which are refused here.

An option is checked in every position, even after ``--`` and as the value of another one. So it does not
matter on which systems an option takes a value.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import NamedTuple

DIGITS = string.digits
ANY = string.ascii_letters + DIGITS
"""For programs that no letter option makes write or run anything, in GNU's, BSD's and busybox's versions."""


class Program(NamedTuple):
    """The options of a program, or of a subcommand.

    `letters` are short options, which may be joined in one word; `valued` are those whose value may follow in
    the same word. `long` has the names of long options, with or without ``=value``. `operands`: how many
    other words there may be; None: any number.
    """

    letters: str
    valued: str
    long: frozenset[str]
    operands: int | None

    def allows(self, words: Sequence[str]) -> bool:
        """Whether the words after the name contain only these options, and not too many operands."""
        operands = 0
        for word in words:
            if not is_option(word):
                operands += 1
            elif word.startswith("--"):
                if word != "--" and word[2:].partition("=")[0] not in self.long:
                    return False
            elif not self._has_letters(word):
                return False
        return self.operands is None or operands <= self.operands

    def _has_letters(self, word: str) -> bool:
        for letter in word[1:]:
            if letter in self.valued:
                return True
            if letter not in self.letters:
                return False
        return True


def is_option(word: str) -> bool:
    """Whether a program may treat a word as an option. A lone ``-`` is standard input."""
    return word[:1] == "-" and word != "-"


def names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def program(letters: str = "", valued: str = "", long: str = "", operands: int | None = None) -> Program:
    """Return a program that knows ``--help`` and ``--version``, too; `long`: names, with blanks between."""
    return Program(letters, valued, names(long) | {"help", "version"}, operands)


SEARCHING = (
    "after-context before-context byte-offset color colour context count file files-with-matches "
    "files-without-match fixed-strings ignore-case invert-match line-buffered line-number line-regexp "
    "max-count no-filename no-ignore-case no-messages null null-data only-matching quiet regexp text "
    "with-filename word-regexp"
)
"""The long options that grep and rg have in common."""
GREP = program(
    "aEFGHIPTUVZbchilLnoqrRsvwxyz" + DIGITS,
    "ABCDdefm",
    f"{SEARCHING} basic-regexp binary binary-files dereference-recursive devices directories "
    "exclude exclude-dir exclude-from extended-regexp include initial-tab label perl-regexp recursive silent",
)
FIND = names(
    "-H -L -P -a -and -o -or -not -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype "
    "-type -xtype -maxdepth -mindepth -depth -size -empty -mtime -mmin -atime -amin -ctime -cmin -newer "
    "-anewer -cnewer -newermt -newerat -newerct -newermm -daystart -perm -user -group -uid -gid -nouser "
    "-nogroup -readable -writable -executable -links -inum -samefile -lname -ilname -xdev -mount -follow "
    "-prune -quit -print -print0 -printf -ls -true -false -fstype -warn -nowarn -noleaf -ignore_readdir_race "
    "-help -version --help --version"
)
"""The words with a dash that find's expressions may hold, besides numbers. Not among them: ``-exec``,
``-execdir``, ``-ok``, ``-okdir``, ``-delete``, ``-fprint``, ``-fprint0``, ``-fprintf``, ``-fls``."""

VERSIONS = {
    "bash": ("--version",),
    "clang": ("--version",),
    "cmake": ("--version",),
    "g++": ("--version",),
    "gcc": ("--version",),
    "make": ("--version",),
    "python": ("--version", "-V"),
    "python3": ("--version", "-V"),
}
"""Programs that may only print their version, with these options. Not among them are cargo, go, node and npm:
because of a file in the folder they, or their wrappers, may download or run another version."""

# Left out, with the reason: uniq writes its second operand; tree takes no value in an option's own word, and
# writes with -o and -R; sort writes with -o, and runs --compress-program; diff runs pr with -l; file writes
# with -C and -p; hostname sets the name that it is given; tail never ends with -f.
PROGRAMS = {
    "arch": program(operands=0),
    "basename": program("az", "s", "multiple suffix zero"),
    "cat": program(
        ANY, long="number number-nonblank show-all show-ends show-nonprinting show-tabs squeeze-blank"
    ),
    "cd": program("LP", operands=1),
    "cksum": program(ANY, long="algorithm check"),
    "cmp": program("bls", "in", "bytes ignore-initial print-bytes quiet silent verbose"),
    "column": program("deJLtx", "cHlNoORsW", "columns json output-separator separator table"),
    "comm": program("123iz", long="check-order nocheck-order output-delimiter total zero-terminated"),
    "cut": program(
        "nsz",
        "bcdf",
        "bytes characters complement delimiter fields only-delimited output-delimiter zero-terminated",
    ),
    "date": program("IRu", long="date iso-8601 reference rfc-3339 rfc-email universal utc"),
    "df": program(
        ANY,
        long=(
            "all block-size exclude-type human-readable inodes local output portability print-type si total "
            "type"
        ),
    ),
    "diff": program(
        "abBcdeEiNnpqrstTuwyZ" + DIGITS,
        "CFILUWx",
        "brief color context exclude ignore-all-space ignore-blank-lines ignore-case ignore-matching-lines "
        "ignore-space-change ignore-tab-expansion ignore-trailing-space label left-column minimal new-file "
        "no-dereference normal recursive report-identical-files show-c-function side-by-side "
        "strip-trailing-cr suppress-common-lines text unified width",
    ),
    "dirname": program("z", long="zero"),
    "du": program(
        ANY,
        "BdtX",
        "all apparent-size block-size bytes count-links dereference exclude human-readable inodes max-depth "
        "no-dereference null one-file-system separate-dirs si summarize threshold time time-style total",
    ),
    "false": program(ANY),
    "file": program(
        "0bhIikLNnrv",
        long=(
            "brief dereference extension keep-going mime mime-encoding mime-type no-buffer no-dereference "
            "no-pad print0 raw"
        ),
    ),
    "fold": program("bs" + DIGITS, "w", "bytes spaces width"),
    "groups": program(operands=1),
    "hostname": program("AdfIis", operands=0),
    "id": program("aGgnruZz", long="context group groups name real user zero"),
    "jq": program(
        "acCejMnrRsS",
        long=(
            "arg argjson args ascii-output color-output compact-output exit-status indent join-output "
            "jsonargs monochrome-output null-input raw-input raw-output seq slurp sort-keys stream tab"
        ),
    ),
    "ls": program(
        ANY,
        "ITw",
        "all almost-all author block-size classify color context dereference dereference-command-line "
        "directory escape file-type format full-time group-directories-first hide hide-control-chars "
        "human-readable hyperlink ignore ignore-backups indicator-style inode kibibytes literal no-group "
        "numeric-uid-gid quote-name quoting-style recursive reverse show-control-chars si size sort tabsize "
        "time time-style width zero",
    ),
    "nl": program(
        "p", "bdfhilnsvw", "body-numbering number-format number-separator number-width starting-line-number"
    ),
    "nproc": program(long="all ignore", operands=0),
    "od": program(
        ANY, "AjNStw", "address-radix format output-duplicates read-bytes skip-bytes strings width"
    ),
    "paste": program("sz", "d", "delimiters serial zero-terminated"),
    "ps": program(ANY, long="cols forest format headers no-headers pid ppid sort user width"),
    "pwd": program("LP", operands=0),
    "readlink": program(
        "efmnqsvz",
        long="canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero",
    ),
    "realpath": program(
        "eELmPqsz",
        long=(
            "canonicalize-existing canonicalize-missing logical no-symlinks physical quiet relative-base "
            "relative-to strip zero"
        ),
    ),
    "rev": program(),
    "rg": program(
        "0acFHIiLlNnoPpqSsUuVvwx",
        "ABCEefgjMmdrtT",
        f"{SEARCHING} binary case-sensitive column count-matches crlf encoding engine "
        "field-context-separator field-match-separator files follow glob glob-case-insensitive heading "
        "hidden iglob ignore-file include-zero json max-columns max-depth max-filesize multiline "
        "multiline-dotall no-config no-heading no-ignore no-ignore-dot no-ignore-global no-ignore-parent "
        "no-ignore-vcs no-line-number no-require-git no-unicode one-file-system passthru path-separator "
        "pcre2 pretty replace smart-case sort sortr stats threads trim type type-add type-list type-not "
        "unrestricted vimgrep",
    ),
    "sort": program(
        "bCcdfghiMmnRrsuVz",
        "kt",
        "check debug dictionary-order field-separator general-numeric-sort human-numeric-sort ignore-case "
        "ignore-leading-blanks ignore-nonprinting key merge month-sort numeric-sort reverse stable unique "
        "version-sort zero-terminated",
    ),
    "stat": program("fLnrtx", "c", "cached dereference file-system format printf terse"),
    "tac": program("br", "s", "before regex separator"),
    "tr": program("Ccdst", long="complement delete squeeze-repeats truncate-set1"),
    "tree": program(
        "aCDdFfghIiJLlNnPpQrSstuvXx",
        long=(
            "charset dirsfirst du filelimit filesfirst gitignore ignore-case inodes matchdirs noreport prune "
            "si sort"
        ),
    ),
    "true": program(ANY),
    "type": program("afPpt"),
    "uname": program(
        "aimnoprsv",
        long=(
            "all hardware-platform kernel-name kernel-release kernel-version machine nodename "
            "operating-system processor"
        ),
        operands=0,
    ),
    "uniq": program(
        "cDdiuz", "fsw", "all-repeated count group ignore-case repeated unique zero-terminated", operands=1
    ),
    "uptime": program("ps", long="pretty since", operands=0),
    "wc": program("cLlmw", long="bytes chars lines max-line-length total words"),
    "which": program("as"),
    "whoami": program(operands=0),
    **dict.fromkeys(("egrep", "fgrep", "grep"), GREP),
    **dict.fromkeys(
        ("head", "tail"), program("qvz" + DIGITS, "cn", "bytes lines quiet silent verbose zero-terminated")
    ),
    **dict.fromkeys(
        ("md5sum", "sha1sum", "sha256sum", "sha512sum"),
        program("bctwz", long="binary check quiet status strict tag text warn zero"),
    ),
}
