"""``fastrpc guard``: checks a guard's configuration, or explains a decision about a call. No tool is called.

``check`` reads the file as `fastrpc serve --guard` does, with the tools of a target, and prints what each
class of callers may call, within which budgets. ``try`` evaluates one call, and shows the values that its
rules saw. ``why`` explains the decision about a call from its record in the audit log (`_guard_why`);
``replay`` decides recorded calls once more (`_guard_replay`). ``init`` writes an initial configuration.
"""

from __future__ import annotations

import os

from fastrpc.cli import configuration
from fastrpc.cli._catalogue import print_json, print_table
from fastrpc.command_line import CommandParser, check_action, suggestion
from fastrpc.errors import ArgumentError, Reworded, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from fastrpc.callers import Caller
    from fastrpc.guard.policy.decisions import CallTarget, Decision, Policy
    from fastrpc.server import Server

DESCRIPTION = "Check a guard's configuration, or print or explain its decision; no tool is called."
USAGE = """\
init [FILE]
       fastrpc guard check FILE [TARGET…] [--json]
       fastrpc guard try FILE TOOL [KEY=VALUE…] [--as CLASS] [--target TARGET]… [--json]
       fastrpc guard why ID [FILE] [--folder FOLDER] [--json]
       fastrpc guard replay FILE [RECORDING] [--former FILE] [--target TARGET]… [--since TIME] [--json]"""
EXAMPLES = """\
  fastrpc guard init                                  write guard.toml
  fastrpc guard check guard.toml                      with the tools of the toolset
  fastrpc guard check guard.toml my_tools.py
  fastrpc guard try guard.toml search text=x --as agent --target my_tools.py
  fastrpc guard try guard.toml order count=11 --target my_tools.py --json
  fastrpc guard why audit_01M8BQNEE9163M5P6X0000016K guard.toml
  fastrpc guard replay changed.toml --former guard.toml --target my_tools.py --since 7d
  fastrpc guard replay guard.toml audit.jsonl --json
"""
ACTIONS = {
    "init": ("Write a first configuration.", ("file",)),
    "check": ("Check a configuration, and print what each class may call.", ("file", "words", "json")),
    "try": (
        "Judge one call, and show what the rules saw.",
        ("file", "words", "caller_class", "target", "json"),
    ),
    "why": ("Explain a call that was refused, from its record.", ("file", "words", "folder", "json")),
    "replay": (
        "Decide recorded calls by a configuration; exit code 1 if one would meet something else.",
        ("file", "words", "former", "target", "since", "until", "json"),
    ),
}


def main(arguments: list[str]) -> int:
    """Run one action; return 0, or 1: it would not run at once, there is no such record, or a recorded call
    would meet something else. Raises UsageError."""
    options = CommandParser("guard", USAGE, DESCRIPTION, EXAMPLES, ACTIONS)
    options.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="guard.toml, fastrpc.toml or mcp-server.json; for init: the file to write (guard.toml); "
        "for why: the ID of a record",
    )
    options.add_argument(
        "words",
        metavar="…",
        nargs="*",
        help="for check: TARGET…, whose tools are checked; for try: TOOL KEY=VALUE…, the call; "
        "for why: FILE, the guard's configuration; for replay: RECORDING, the folder of an audit log "
        "(that of FILE), or a file that 'fastrpc audit export' has written",
    )
    options.option("--as CLASS", "for try: the class of the caller", dest="caller_class")
    options.option("--target TARGET…", "a file or module with the tools; may be repeated")
    options.option(
        "--former FILE", "for replay: the configuration that has decided the recorded calls (FILE)"
    )
    options.option(
        "--since TIME", "for replay: only calls since then: RFC 3339, or how long ago: 90s, 30m, 2h, 7d"
    )
    options.option("--until TIME", "for replay: only calls before then")
    options.option("--folder FOLDER", "for why: the folder of the audit log (audit, in FASTRPC_STATE_DIR)")
    options.option("--json", "print JSON, for programs")
    chosen = options.parse(arguments)
    check_action("guard", chosen.action, ACTIONS)
    options.check_options(chosen, "this action")
    if chosen.action == "init":
        return _init(chosen)
    if chosen.file is None:
        raise UsageError(f"guard {chosen.action}: FILE is missing (see 'fastrpc guard --help')")
    if chosen.action == "why":
        from fastrpc.cli._guard_why import why

        return why(chosen)
    if chosen.action == "replay":
        from fastrpc.cli._guard_replay import replay_recorded

        return replay_recorded(chosen, loaded)
    return _check(chosen) if chosen.action == "check" else _try(chosen)


def _init(chosen: Namespace) -> int:
    from fastrpc.cli._project_files import GUARD

    if chosen.words:
        raise UsageError(f"guard init: one argument too many: {chosen.words[0]!r:.80}")
    path = chosen.file or "guard.toml"
    place = os.path.abspath(path)  # raises FileNotFoundError if the working directory was deleted
    failing = Reworded(OSError, UsageError, f"guard init: {path}: ")
    with failing, open(place, "x", encoding="utf-8") as file:
        file.write(GUARD)
    print(f"Made {path}. Change it, then: fastrpc guard check {path} server.py")
    return 0


def loaded(file: str, targets: list[str]) -> tuple[Server, Policy]:
    """Return the server of some targets, and a file as its policy. Raises UsageError."""
    from fastrpc.cli._assemble import assemble
    from fastrpc.guard.policy.file import read
    from fastrpc.guard.serving import policy_for

    found = read(file)
    settings = configuration({}, targets)
    settings.export(os.environ)
    server = assemble(targets, settings)
    return server, policy_for(found, server)


def _caller(policy: Policy, caller_class: str | None) -> Caller:
    from fastrpc.callers import Caller

    config = policy.config
    known = {config.default_class, config.user_class, *config.classes}
    if caller_class is not None and caller_class not in known:
        raise UsageError(f"--as: no class {caller_class}{suggestion(caller_class, known)}")
    return Caller("try", caller_class or config.default_class)


def _decision(policy: Policy, caller: Caller, tool: Any) -> tuple[CallTarget, Decision]:
    from fastrpc.guard.policy.decisions import CallTarget

    target = CallTarget("tool", tool.name, tool.effect, tool.risk)
    return target, policy.decision(caller, policy.class_key(caller), target)


def _check(chosen: Namespace) -> int:
    server, policy = loaded(chosen.file, chosen.words)
    config = policy.config
    classes = list(dict.fromkeys([config.user_class, config.default_class, *config.classes]))
    rows = []
    budgets: dict[str, dict[tuple[str, str], None]] = {each: {} for each in classes}
    for tool in server.registries.tools:
        decisions = [_decision(policy, _caller(policy, each), tool)[1] for each in classes]
        for name, decision in zip(classes, decisions, strict=True):
            budgets[name] |= {(about, budget.text): None for about, budget, _ in decision.budgets}
        rows.append((tool.name, decisions[0].verdict.risk, *(_word(policy, each) for each in decisions)))
    if chosen.json:
        columns = ("tool", "risk", *classes)
        tools = [dict(zip(columns, row, strict=True)) for row in rows]
        found = {
            name: [{"tool": about or None, "budget": text} for about, text in sorted(each)]
            for name, each in budgets.items()
        }
        print_json({"policy": policy.version, "tools": tools, "budgets": found})
    else:
        print_table(("tool", "risk", *classes), rows)
        for name, each in budgets.items():
            if each:
                texts = [f"{text} of {about}" if about else text for about, text in sorted(each)]
                print(f"\nbudgets of {name}: {', '.join(texts)}")
        rules = f"{len(config.rules)} rule{'' if len(config.rules) == 1 else 's'}"
        print(f"\n{chosen.file} is valid: {rules}, policy {policy.version}")
    return 0


def _word(policy: Policy, decision: Decision) -> str:
    """Return a decision that applies to all calls of a tool, as text."""
    from fastrpc.guard.permissions import word_of

    word = word_of(policy, decision)
    return f"{word}, by rules" if decision.rules else word


def _try(chosen: Namespace) -> int:
    if not chosen.words:
        raise UsageError("guard try: name the tool")
    name, *pairs = chosen.words
    server, policy = loaded(chosen.file, chosen.target)
    tool = server.registries.tools.get(name)
    if tool is None:
        raise UsageError(f"no tool {name}{suggestion(name, [each.name for each in server.registries.tools])}")
    from fastrpc.cli._arguments import typed

    given = typed(pairs, name, tool.signature.input_schema)
    with Reworded(ArgumentError, UsageError, "the arguments do not fit: "):
        arguments = tool.signature.named(tool.signature.bind(given))
    found = _judged(policy, _caller(policy, chosen.caller_class), tool, arguments)
    if chosen.json:
        print_json(found)
    else:
        _print(found)
    return 0 if found["decision"] == "allow" else 1


def _judged(policy: Policy, caller: Caller, tool: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return how a call would be decided, as JSON."""
    from fastrpc.guard.policy.decisions import values_of

    target, decision = _decision(policy, caller, tool)
    verdict = policy.judge(decision, caller, target, arguments)
    action = "deny" if verdict.action == "deny" else "ask" if policy.asks(verdict) else "allow"
    before = {**values_of(caller, target, policy.base_risk(target)), "args": arguments}
    values = {**values_of(caller, target, verdict.risk), "args": arguments}
    return {
        "decision": action,
        "hidden": decision.is_hidden,
        "rule": verdict.rule,
        "reason": verdict.reason,
        "risk": verdict.risk,
        "risk_rule": verdict.risk_rule,
        "class": caller.caller_class,
        "arguments": arguments,
        "rules": [
            {
                "id": rule.config.id,
                "when": rule.config.when,
                "saw": dict(rule.expression.explain(values if rule.config.risk is None else before)),
            }
            for rule in decision.rules
        ],
        "policy": policy.version,
    }


def _print(found: dict[str, Any]) -> None:
    words = {"allow": "would run", "ask": "would wait for a person's approval", "deny": "would be refused"}
    hidden = ", as a tool that does not exist" if found["hidden"] else ""
    by = f" by the rule {found['risk_rule']}" if found["risk_rule"] else ""
    print(f"The call {words[found['decision']]}{hidden}. Class: {found['class']}, risk: {found['risk']}{by}")
    if found["rule"]:
        print(f"Rule: {found['rule']}")
    if found["reason"]:
        print(f"Reason: {found['reason']}")
    for rule in found["rules"]:
        print(f"\n{rule['id']}: {rule['when']}")
        for source, value in rule["saw"].items():
            print(f"  {source} = {value!r}")
