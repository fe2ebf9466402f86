"""``fastrpc guard why ID``: why a call was refused or allowed, from its audit record, and how to change that.

With a policy's file it reports what has changed since the call. Reads the audit log as `fastrpc audit` does.
"""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from fastrpc.cli import audit
from fastrpc.cli._catalogue import print_json
from fastrpc.diagnostics import write_line
from fastrpc.errors import UsageError
from fastrpc.guard.audit.reading import fields_of, record_of
from fastrpc.terminal.text import plain


def why(chosen: Namespace) -> int:
    """Print the explanation of the record ``chosen.file``; return 1 if it is not there. Raises UsageError."""
    from fastrpc.guard.explanation import explained

    if len(chosen.words) > 1:
        raise UsageError("guard why: expected an id and at most one file")
    file = chosen.words[0] if chosen.words else None
    policy = None
    if file is not None:
        from fastrpc.guard.policy.decisions import Policy
        from fastrpc.guard.policy.file import read

        policy = Policy(read(file), {})
    line = record_of(audit.folder_of(chosen), chosen.file)
    if line is None:
        write_line(f"fastrpc: the audit log has no record {chosen.file:.80}")
        return 1
    found = explained(fields_of(line), policy)
    if chosen.json:
        print_json(found)
    else:
        _print(found, file)
    return 0


def _print(found: dict[str, Any], file: str | None) -> None:
    who = f"{found.get('actor')} (class {found.get('class')})"
    _say(f"{found.get('time')}  {found.get('action')} {found.get('tool')} by {who}: {found.get('outcome')}")
    if "why" in found:
        reason = f", {found['reason']}" if found.get("reason") else ""
        _say(f"Why: {found['why']}{reason}; risk {found.get('risk')}")
    elif "risk" in found:
        by = f", by rule {found['by']}" if "by" in found else ""
        _say(f"Allowed{by}; risk {found['risk']}")
    if "approval" in found:
        _say(f"Approval {found['approval']}: fastrpc approvals show {found['approval']}")
    if "rule" in found:
        _print_rule(found["rule"])
    if "asks" in found:
        asks = found["asks"]
        _say(f"A person is asked from {asks.get('from')} on; {asks.get('by')} says {asks.get('risk')}")
    if "rate" in found:
        _say(f"Rate: {found['rate']}")
    for each in found.get("lists", ()):
        near = f"; the nearest is {each['nearest']}" if each["nearest"] else ""
        _say(f"{each['list']} does not have it{near}")
    if found["changes"]:
        _say("")
        _say("What would change it, each line by itself:")
        for change in found["changes"]:
            _say(f"  {change}")
    elif found.get("outcome") == "unknown":
        more = "a rule hides it" if file is not None else "it is hidden: name the policy's file"
        _say(f"There is no such name, or {more}")
    _print_policy(found, file)


def _say(text: str) -> None:
    """Print a line with terminal control characters escaped: clients have chosen the names and values."""
    print(plain(text))


def _print_rule(rule: dict[str, Any]) -> None:
    _say(f"Rule {rule['id']} ({rule['then']}): {rule['when'] or 'its text is not recorded'}")
    for atom in rule["atoms"]:
        state = atom["value"] if isinstance(atom["value"], str) else str(atom["value"]).lower()
        _say(f"  {atom['text']} is {state}")
    for path, value in rule["saw"].items():
        _say(f"  {path} = {json.dumps(value, ensure_ascii=False)}")
    if not rule["whole"]:
        _say("  (long or secret values are cut: no others were tried)")


def _print_policy(found: dict[str, Any], file: str | None) -> None:
    recorded, now = found["policy"]["recorded"], found["policy"]["now"]
    words = f"Policy {recorded}"
    if file is not None and recorded == now:
        words += f", as {file} is now"
    elif file is not None:
        rule = f"; the rule is {found['rule']['now']}" if "rule" in found else ""
        words += f"; {file} has changed since, to {now}{rule}"
    _say("")
    _say(words)
