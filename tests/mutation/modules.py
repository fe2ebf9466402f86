"""What `make mutate` changes: modules in which an error would be dear, each with the tests that must see it.

`EQUIVALENT` has the changes that no test can see, as a run prints them, and why nobody could.
"""

from __future__ import annotations

MODULES = {
    "fastrpc/client_requests/request_state.py": "tests/unit/test_asking_rounds.py",
    "fastrpc/compat/lowlevel/own_methods.py": "tests/unit/test_compat_lowlevel.py "
    "tests/unit/test_compat_lowlevel_methods.py",
    "fastrpc/compat/lowlevel/server.py": "tests/unit/test_compat_lowlevel.py "
    "tests/unit/test_compat_lowlevel_methods.py tests/unit/test_compat_middleware.py "
    "tests/unit/test_compat_sdk_parts.py tests/integration/test_compat_lowlevel_servers.py",
    "fastrpc/engine/output_validation.py": "tests/unit/test_results.py",
    "fastrpc/guard/budgets/ledger.py": "tests/unit/test_budgets.py tests/unit/test_spending.py",
    "fastrpc/guard/policy/decisions.py": "tests/unit/test_guard_policy.py "
    "tests/unit/test_guard_risk_order.py tests/unit/test_guards.py tests/unit/test_budgets.py",
    "fastrpc/guard/policy/patterns.py": "tests/unit/test_name_patterns.py tests/unit/test_guard_policy.py",
    "fastrpc/guard/shell/git.py": "tests/unit/test_shell_lines.py",
    "fastrpc/guard/shell/harmless.py": "tests/unit/test_shell_lines.py tests/unit/test_shell_rules.py",
    "fastrpc/protocol/lifecycle.py": "tests/unit/test_lifecycle.py",
    "fastrpc/protocol/uri_template.py": "tests/unit/test_uri_templates.py",
    "fastrpc/redaction.py": "tests/unit/test_masking.py",
}

EXACT = "_EXACT.get(values.kind, frozenset()).issuperset(map(type, value.values())):"

EQUIVALENT: dict[tuple[str, ...], str] = {
    (
        "fastrpc/client_requests/request_state.py",
        '- runtime.secret = text.encode("utf-8", "surrogateescape") if text else os.urandom(32)',
        '+ runtime.secret = text.encode("utf-8", "surrogateescape") if text else os.urandom( 33)',
    ): "a key of one random byte more seals as well",
    (
        "fastrpc/engine/output_validation.py",
        f'- if values.kind == "json" or {EXACT}',
        f'+ if values.kind == "json" and {EXACT}',
    ): "this only saves the loop behind it, which finds nothing wrong with these values either",
    (
        "fastrpc/guard/policy/decisions.py",
        '- RANKS = {"": 0, ALLOW: 1, ASK: 2, DENY: 3}',
        '+ RANKS = {"": 0, ALLOW: 1, ASK: 2, DENY: 2}',
    ): "a decision that denies has no rules over arguments behind it: nothing is ranked against it",
    (
        "fastrpc/guard/budgets/ledger.py",
        "- self.begins = self.ends = 0",
        "+ self.begins = self.ends = -1",
    ): "no clock is between them, so the first look at it begins a day",
    (
        "fastrpc/compat/lowlevel/own_methods.py",
        "- return dict(values[0])",
        "+ return dict(values[ -1])",
    ): "a handler has one value, the params as a whole",
    (
        "fastrpc/guard/policy/decisions.py",
        "- MOST_KEPT = 4096",
        "+ MOST_KEPT = 4095",
    ): "it bounds memory, and nothing promises its value",
    (
        "fastrpc/redaction.py",
        "- MOST_HIDDEN = 4000",
        "+ MOST_HIDDEN = 4001",
    ): "it bounds memory, and nothing promises its value",
}
