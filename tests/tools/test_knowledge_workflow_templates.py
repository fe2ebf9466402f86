"""Templates of workflows: values of the run's data, and nothing of Python; sizes are bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastrpc.tools.knowledge._workflows import templates
from fastrpc.tools.knowledge._workflows.filters import FILTERS, JINJAS_TESTS, LARGEST, TESTS
from fastrpc.tools.knowledge._workflows.templates import BadTemplate
from hypothesis import given
from hypothesis import strategies as st

DATA: dict[str, Any] = {
    "node": {"n-1": {"output": {"items": [1, "a", {"x": None}], "n": 5}}},
    "vars": {"x": "é", "long": "x" * 200_000},
    "trigger": {"body": {}},
    "item": 3,
    "index": 0,
}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ $node['n-1'].output.items[0] }}", 1),
        ("{{ $node['n-1'].output.items }}", [1, "a", {"x": None}]),
        ("{{ $node['n-1'].output.items | length }}", 3),
        ("a {{ $vars.x }} b {{ $node['n-1'].output.items }}", 'a é b [1, "a", {"x": null}]'),
        ("{{ $item * 2 + 1 }}", 7),
        ("{{ $vars.none | default('q') }}", "q"),
        ("{{ $vars.x if $item > 2 else 'no' }}", "é"),
        ("{{ $vars.x is defined and not $trigger.body }}", True),
        ("{{ ['a', $vars.x] | join(', ') | upper }}", "A, É"),
        ("{{ 'a }} b' }}", "a }} b"),
        ("{{ '$node' }}", "$node"),
        ({"a": ["{{ $item }}", 1, None], "{{ $item }}": True}, {"a": [3, 1, None], "{{ $item }}": True}),
        ("{% for x in y %}", "{% for x in y %}"),
    ],
)
def test_a_template_has_the_value_of_its_expressions(template: Any, value: Any) -> None:
    templates.check(template)
    assert templates.rendered(template, DATA) == value


@pytest.mark.parametrize(
    "template",
    [
        "{{ ().__class__ }}",
        "{{ $vars.__class__ }}",
        "{{ $vars['__class__'] }}",
        "{{ range(10**9) }}",
        "{{ $vars.x.upper() }}",
        "{{ 'x' * 10**9 }}",
        "{{ 2 ** 2 }}",
        "{{ '%0100000000d' | format(1) }}",
        "{{ $vars | attr('x') }}",
        "{{ cycler }}",
        "{{ self }}",
        "{{ $secrets.x }}",
        "{{ $vars.x",
        "{{ }}",
        "{{ 1 + }}",
        "{{ " + "(" * 500 + "1" + ")" * 400 + " }}",
        "{{ " + "-" * 500 + "1 }}",
        "{{ " + "not " * 200 + "1 }}",
        "{{ '" + "x" * 1000 + "' }}",
        "{{ 1 }}" * 201,
    ],
)
def test_what_is_no_expression_over_data_is_refused_before_a_run(template: str) -> None:
    with pytest.raises(BadTemplate):
        templates.check({"a": [template]})


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ $vars.nothing }}", "no attribute 'nothing'"),
        ("{{ $vars.x.upper }}", "no attribute 'upper'"),
        ("{{ $vars['__cl' ~ 'ass__'] }}", "no attribute '__class__'"),
        ("{{ [$vars.nothing] }}", "not JSON serializable"),
        ("{{ 'x' * 1000000000 }}", "*: expected numbers, got str"),
        ("{{ '%0100000000d' % 1 }}", "%: expected numbers, got str"),
        ("{{ 9223372036854775807 + 1 }}", "+: expected a number below 2^63"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ 'nan' | float }}", "not JSON compliant"),
        ("{{ $vars.long ~ $vars.long }}", "at most 262,144 characters"),
        ("{{ $vars.long + $vars.long }}", "at most 262,144 characters"),
        ("{{ [1, 2, 3] | join($vars.long) }}", "at most 262,144 characters"),
        (["{{ $vars.long }}", "{{ $vars.long }}"], "at most 262,144 characters"),
        ("{{ '\"' " + "| json " * 28 + "}}", "json: expected at most 262,144 characters"),
        ("{{ '%0900000000d' is even }}", "%: expected numbers, got str"),
        ("{{ '%0900000000d' is odd }}", "%: expected numbers, got str"),
        ("{{ 5 | round(-100000000) }}", "round: expected at most 20 digits"),
        ("{{ '\\ud800' }}", "surrogates not allowed"),
    ],
)
def test_what_has_no_value_or_too_large_a_one_is_an_error(template: Any, message: str) -> None:
    templates.check(template)
    with pytest.raises(BadTemplate) as raised:
        templates.rendered(template, DATA)
    assert message in str(raised.value)


LEAVES = (
    "$node['n-1'].output.items", "$node['n-1'].output.n", "$vars.x", "$vars.none", "$vars", "$trigger",
    "$item", "1", "0", "2.5", "-7", "1e308", "'%09d'", "'é\"'", "'nan'", "true", "none", "[]", "{}",
    "range(9)", "self", "$vars.x.upper()", "().__class__", "cycler", "namespace(a=1)",
    "'{0.__class__}'.format(1)", "''.join", "$vars.__init__", "$vars['__globals__']", "loop", "caller()",
    "lipsum.__globals__", "_", "run_node", "environment", "context", "'\\ud800'", "10 ** 99", "[][:1]",
)  # fmt: skip
FORMS = (
    "({0} + {1})", "({0} * {1})", "({0} % {1})", "({0} // {1})", "({0} - {1})", "({0} ~ {1})",
    "({0} and {1})", "(not {0})", "({0} == {1})", "({0} < {1})", "({0} in {1})", "({0} if {1})",
    "({0} if {1} else {0})", "[{0}, {1}]", "({0}, {1})", "{{'a': {0}, {1}: 1}}", "({0})[{1}]", "({0}).{1}",
    "({0})['__' ~ {1} ~ '__']", "({0} | map({1}))", "({0} | attr({1}))", "({0} | format({1}))",
    "({0} | tojson)", "({0} is callable)", *(f"({{0}} | {name})" for name in FILTERS),
    *(f"({{0}} | {name}({{1}}))" for name in FILTERS), *(f"({{0}} is {name})" for name in (*TESTS,
    *JINJAS_TESTS) if name.isalpha()),
)  # fmt: skip


def formed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(str.format, st.sampled_from(FORMS), inner, inner)


def is_json(value: object) -> bool:
    if type(value) in (list, tuple):
        return all(map(is_json, value))  # type: ignore[call-overload]
    if isinstance(value, dict):
        return all(map(is_json, [*value, *value.values()]))
    return value is None or type(value) in (str, int, float, bool)


@given(st.recursive(st.sampled_from(LEAVES), formed, max_leaves=8))
def test_an_expression_is_an_error_or_has_a_value_that_is_json(expression: str) -> None:
    template = f"{{{{ {expression} }}}}"
    try:
        templates.check(template)
        value = templates.rendered(template, DATA)
    except BadTemplate:
        return
    assert is_json(value)
    assert len(json.dumps(value, ensure_ascii=False).encode("utf-8")) <= 4 * LARGEST


@given(st.text())
def test_any_text_is_a_template_or_none(text: str) -> None:
    for template in (text, f"{{{{{text}}}}}"):
        try:
            templates.check(template)
            templates.rendered(template, DATA)
        except BadTemplate:
            pass


def test_a_condition_is_one_expression_in_braces_or_without() -> None:
    assert templates.holds("$item == 3", DATA)
    assert not templates.holds("{{ $item > 3 }}", DATA)
    for wrong in ("", "{{ 1 }} {{ 2 }}", "a b"):
        with pytest.raises(BadTemplate):
            templates.check_condition(wrong)
