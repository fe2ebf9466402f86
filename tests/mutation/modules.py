"""What `make mutate` changes: modules in which an error would be dear, each with the tests that must see it.

What no test can see is said here, as a run prints it, and why no one could: single changes in `EQUIVALENT`;
in `UNPROMISED` the constants of which one more or one less is the same, since nothing promises their number.
"""

from __future__ import annotations

import re

MODULES = {
    "fastrpc/client_requests/request_state.py": "tests/unit/test_asking_rounds.py tests/unit/test_asking.py",
    "fastrpc/compat/lowlevel/own_methods.py": "tests/unit/test_compat_lowlevel.py "
    "tests/unit/test_compat_lowlevel_methods.py",
    "fastrpc/compat/lowlevel/server.py": "tests/unit/test_compat_lowlevel.py "
    "tests/unit/test_compat_lowlevel_methods.py tests/unit/test_compat_middleware.py "
    "tests/unit/test_compat_sdk_parts.py tests/integration/test_compat_lowlevel_servers.py",
    "fastrpc/engine/output_validation.py": "tests/unit/test_results.py",
    "fastrpc/guard/budgets/ledger.py": "tests/unit/test_budgets.py tests/unit/test_spending.py "
    "tests/unit/test_budget_file.py",
    "fastrpc/guard/policy/decisions.py": "tests/unit/test_guard_policy.py "
    "tests/unit/test_guard_risk_order.py tests/unit/test_guards.py tests/unit/test_budgets.py "
    "tests/unit/test_spending.py tests/meta/test_limits_page.py",
    "fastrpc/guard/policy/patterns.py": "tests/unit/test_name_patterns.py tests/unit/test_guard_policy.py",
    "fastrpc/guard/shell/git.py": "tests/unit/test_shell_lines.py",
    "fastrpc/guard/shell/harmless.py": "tests/unit/test_shell_lines.py tests/unit/test_shell_rules.py",
    "fastrpc/protocol/lifecycle.py": "tests/unit/test_lifecycle.py",
    "fastrpc/protocol/uri_template.py": "tests/unit/test_uri_templates.py",
    "fastrpc/redaction.py": "tests/unit/test_masking.py",
    "fastrpc/signed_texts.py": "tests/unit/test_asking_rounds.py tests/unit/test_signed_texts.py",
}

UNPROMISED = {
    "fastrpc/guard/budgets/ledger.py": {"FIRST", "LEAST", "MOST_WAITING"},
    "fastrpc/redaction.py": {"MOST_HIDDEN"},
}
"""Bounds of memory, and estimates to begin with: that they hold is tested, how large they are nothing says.
What docs/limits.md says is not among them (`tests/meta/test_limits_page.py`)."""

NUMBER = re.compile(r"\d[\d_]*")

LEDGER, TEMPLATES = "fastrpc/guard/budgets/ledger.py", "fastrpc/protocol/uri_template.py"
CHANGES = (
    "changes = {} if variables is None else changes_of(variables)  # another thread may change them meanwhile"
)
RANK = "self.rank = (literal, {}wide, {}sum(span.optional for span in spans))"

EQUIVALENT: dict[tuple[str, str, str], str] = {
    ("fastrpc/compat/lowlevel/own_methods.py", "- is_text = False", "+ is_text = True"): (
        "it says how a text is written, and what the handler of a method returns is a dict by then"
    ),
    (LEDGER, "- if not ledger.begins <= now < ledger.ends:", "+ if not ledger.begins < now < ledger.ends:"): (
        "in the first moment of a day it begins once more"
    ),
    **{
        (LEDGER, "- if found > 0:", f"+ if found {what}:"): "where it is 0 this has returned before"
        for what in ("> -1", ">= 0")
    },
    ("fastrpc/guard/policy/decisions.py", "- *,", "+ /,"): (
        "whoever makes one passes what stands before by its place, and the rest by name, either way"
    ),
    ("fastrpc/redaction.py", f"- {CHANGES.format(0)}", f"+ {CHANGES.format(1)}"): (
        "neither is the number of an empty dict made just now, so the environment is read again"
    ),
    **{
        (TEMPLATES, f"- {RANK.format('-', '-')}", f"+ {RANK.format(*signs)}"): (
            "~n is -n less one: ranks are in the same order"
        )
        for signs in ("~-", "-~")
    },
}


def is_equivalent(module: str, diff: list[str]) -> bool:
    """Whether it has been shown that no test can see a change of a module."""
    return (module, *diff) in EQUIVALENT or is_of_no_promise(module, diff) or is_checked_twice(diff)


def is_of_no_promise(module: str, diff: list[str]) -> bool:
    """Whether only the number of a constant is another one by one."""
    if len(diff) != 2:
        return False
    before, after = (line[2:] for line in diff)
    name, sign, _ = before.partition(" = ")
    is_number = NUMBER.sub("0", before) == NUMBER.sub("0", after)
    return bool(sign) and is_number and name in UNPROMISED.get(module, ())


def is_checked_twice(diff: list[str]) -> bool:
    """Whether only ``strict=True`` of a `zip` was changed: a second look at what was made of the same length.
    Where lengths may differ it says ``strict=False``, and to change that is another matter."""
    return len(diff) == 2 and diff[0][2:].replace("strict=True", "strict=False") == diff[1][2:]
