"""The dashboard's page of the policy: shown, checked, compared with recorded calls, and saved."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.dashboard_browser import Browser
from support.guarded_shop import POLICY
from support.pages_read import elements_that_no_page_has

from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.view import Sources
from fastrpc.guard.audit.log import AuditLog
from fastrpc.guard.callers.tokens import CallerTokens
from fastrpc.guard.editing import PolicyEditor
from fastrpc.guard.policy import file as policy_file
from fastrpc.storage.database import Database
from fastrpc.transports.http.guard import AccessRules

pytest_plugins = ["support.guard_database", "support.guarded_dashboard"]
Visit = Callable[..., Browser]
Recorded = Callable[[], list[dict[str, Any]]]
HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(2)>' </textarea><b onfocus=alert(3)> {{7*7}}"
ACTIONS = ("/policy/edit", "/policy/check", "/policy/preview", "/policy/save")
CHANGED = POLICY.replace("args.count > 10", "args.count > 5")


def text_of(page: str) -> str:
    """Return the words of a page, without its elements."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def version_of(browser: Browser) -> str:
    found = re.search(r'name="version" value="(\w+)"', browser.get("/policy/edit").text)
    assert found is not None
    return found[1]


def typed_in(page: str) -> str:
    """Return what is in the field of the form, as a browser reads it."""
    found = re.search(r"<textarea[^>]*>\n(.*)</textarea>", page, re.DOTALL)
    assert found is not None
    return html.unescape(found[1])


def sent(text: str) -> str:
    """Return a text as browsers send it."""
    return text.replace("\n", "\r\n")


# --- checking ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "line", "said"),
    [
        ("tools = [", "tools = ", 2, "not TOML"),
        ("args.count > 10", "args.cuont > 10", 13, "cuont"),
        ('then = "deny"', 'then = "never"', 14, "expected deny, ask or allow"),
        ('tools = ["order"]', 'tools = ["oder"]', 12, "there is no tool oder (did you mean order?)"),
        ("60/minute", "often", 7, "expected a rate"),
    ],
)
def test_a_mistake_is_said_with_its_line_and_reason(
    visit: Visit, policy: Path, before: str, after: str, line: int, said: str
) -> None:
    browser = visit()
    text = POLICY.replace(before, after, 1)
    for headers in ({"hx-request": "true"}, {}):
        version = version_of(browser)
        answer = browser.send("/policy/check", text=sent(text), version=version, headers=headers)
        words = text_of(answer.text)
        assert f"Line {line}:" in words
        assert said in words
        assert text.splitlines()[line - 1] in words
        if headers:
            assert "<html" not in answer.text
        else:
            assert typed_in(answer.text) == text
    assert policy.read_text() == POLICY


def test_a_text_without_a_mistake_is_said_to_have_none_with_warnings(visit: Visit) -> None:
    browser = visit()
    text = POLICY.replace('"docs_*"]', '"docs_*", "serch"]')
    answer = browser.send("/policy/check", text=text, version=version_of(browser))
    words = text_of(answer.text)
    assert "There is no mistake" in words
    assert "there is no tool serch (did you mean search?)" in words


def test_checking_takes_no_variable_and_reveals_no_secret(
    visit: Visit, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_SECRET", "s3cret-of-the-environment")
    private = tmp_path / "private"
    private.write_text("s3cret-of-the-file\n")
    private.chmod(0o600)
    browser = visit()
    for reference in ("env:OTHER_SECRET", f"file:{private}"):
        text = f'{POLICY}\n[approvals.webhook]\nurl = "https://example.com"\nsecret = "{reference}"\n'
        answer = browser.send("/policy/check", text=text, version=version_of(browser))
        assert "There is no mistake" in answer.text
        assert "s3cret" not in answer.text
    assert os.environ["OTHER_SECRET"] == "s3cret-of-the-environment"
    missing = POLICY + '[approvals.webhook]\nurl = "https://example.com"\nsecret = "env:NOT_THERE"\n'
    answer = browser.send("/policy/check", text=missing, version=version_of(browser))
    assert "the environment variable NOT_THERE is not set" in answer.text


# --- saving -----------------------------------------------------------------------------------------------


def test_a_text_is_saved_after_it_was_shown_what_it_changes(
    visit: Visit, policy: Path, recorded: Recorded
) -> None:
    policy.chmod(0o640)
    browser = visit("grace")
    version = version_of(browser)
    shown = browser.send("/policy/preview", text=sent(CHANGED), version=version)
    words = text_of(shown.text)
    assert '- when = "args.count > 10" + when = "args.count > 5"' in words
    assert "There are no recorded calls" in words
    assert policy.read_text() == POLICY
    saved = browser.send("/policy/save", text=sent(CHANGED), version=version)
    assert saved.status_code == 303
    assert policy.read_text() == CHANGED
    former = policy.with_name("guard.toml.former")
    assert former.read_text() == POLICY
    assert (policy.stat().st_mode & 0o777, former.stat().st_mode & 0o777) == (0o640, 0o640)
    page = text_of(browser.get(saved.headers["location"].removeprefix("/dashboard")).text)
    assert "It is saved. The former file is kept as guard.toml.former" in page
    (done,) = recorded()
    assert (done["actor"], done["action"], done["outcome"]) == ("grace", "policy.save", "ok")
    assert done["former_policy"] == version
    assert done["policy"] == version_of(browser)


@pytest.mark.parametrize(
    "content", [POLICY, "\n\n" + POLICY, POLICY.replace("\n", "\r\n"), "\ufeff" + POLICY]
)
def test_a_file_keeps_its_line_ends_and_what_is_not_changed(visit: Visit, policy: Path, content: str) -> None:
    policy.write_bytes(content.encode())
    browser = visit()
    version = version_of(browser)
    text = typed_in(browser.last) + "# a line more\n"
    assert browser.send("/policy/save", text=sent(text), version=version).status_code == 303
    end = "\r\n" if "\r\n" in content else "\n"
    assert policy.read_bytes() == (content + "# a line more" + end).encode()


def test_a_link_is_kept_and_what_it_leads_to_is_replaced(visit: Visit, policy: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real = tmp_path / "real" / "policy-1"
    policy.rename(real)
    policy.symlink_to(real)
    browser = visit()
    assert browser.send("/policy/save", text=CHANGED, version=version_of(browser)).status_code == 303
    assert policy.is_symlink()
    assert real.read_text() == CHANGED


@pytest.mark.parametrize("action", ["/policy/preview", "/policy/save"])
def test_a_file_that_was_changed_meanwhile_is_not_overwritten_and_nothing_typed_is_lost(
    visit: Visit, policy: Path, action: str
) -> None:
    browser = visit()
    version = version_of(browser)
    others = POLICY.replace('"search", "order", "docs_*"', '"search", "order"')
    policy.write_text(others)
    answer = browser.send(action, text=sent(CHANGED), version=version)
    words = text_of(answer.text)
    assert (answer.status_code, "has been changed since you opened it" in words) == (409, True)
    assert '- tools = ["search", "order"] + tools = ["search", "order", "docs_*"]' in words
    assert typed_in(answer.text) == CHANGED
    assert policy.read_text() == others
    now = re.search(r'name="version" value="(\w+)"', answer.text)
    assert now is not None
    assert browser.send("/policy/save", text=sent(CHANGED), version=now[1]).status_code == 303
    assert policy.read_text() == CHANGED


@pytest.mark.parametrize("action", ["/policy/preview", "/policy/save"])
def test_a_text_with_a_mistake_is_not_saved_and_nothing_typed_is_lost(
    visit: Visit, policy: Path, action: str
) -> None:
    browser = visit()
    wrong = POLICY.replace("args.count", "args.cuont")
    answer = browser.send(action, text=sent(wrong), version=version_of(browser))
    assert (answer.status_code, typed_in(answer.text)) == (400, wrong)
    assert "Line 13:" in answer.text
    assert policy.read_text() == POLICY


def test_a_file_that_cannot_be_written_is_said_and_nothing_typed_is_lost(
    visit: Visit, policy: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastrpc.guard import editing

    def refuse(*arguments: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(editing, "replace_file", refuse)
    browser = visit()
    answer = browser.send("/policy/save", text=sent(CHANGED), version=version_of(browser))
    assert (answer.status_code, typed_in(answer.text)) == (503, CHANGED)
    assert "The file cannot be written: Read-only file system" in answer.text
    assert [each["outcome"] for each in recorded()] == ["error"]


def test_the_way_back_from_the_preview_keeps_the_text(visit: Visit) -> None:
    browser = visit()
    version = version_of(browser)
    shown = browser.send("/policy/preview", text=sent(CHANGED), version=version)
    found = re.search(r'name="text" value="([^"]*)"', shown.text)
    assert found is not None
    assert html.unescape(found[1]) == CHANGED
    back = browser.send("/policy/edit", text=sent(CHANGED), version=version)
    assert typed_in(back.text) == CHANGED


def test_what_is_read_only_at_the_start_is_said(visit: Visit) -> None:
    browser = visit()
    text = POLICY + "\n[defaults]\nhide = false\n"
    shown = browser.send("/policy/preview", text=text, version=version_of(browser))
    assert "read only when a server starts" in shown.text
    shown = browser.send("/policy/preview", text=CHANGED, version=version_of(browser))
    assert "read only when a server starts" not in shown.text


def test_a_file_in_the_form_of_sophon_is_checked_and_saved(
    visit: Visit, database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "mcp-server.json"
    file.write_text('{"expose": {"tools": ["search"]}}\n')
    sources = Sources(lambda: database, policy=PolicyEditor(str(file)))
    browser = visit(at=Dashboard(sources, AccessRules(None)))
    version = version_of(browser)
    wrong = browser.send("/policy/check", text='{"expose": {"tools": 3}}', version=version)
    assert "expose.tools: expected an array of texts" in wrong.text
    browser.send("/policy/save", text='{"expose": {"tools": ["order"]}}', version=version)
    assert file.read_text() == '{"expose": {"tools": ["order"]}}'


# --- recorded calls ---------------------------------------------------------------------------------------


def record(log: AuditLog, tool: str, version: str = "old", actor: str = "ada#1", **more: Any) -> None:
    common = {"category": "mcp_server", "actor": actor, "class": "agent", "action": "tools/call"}
    log.append({**common, "tool": tool, "outcome": "ok", "risk": "none", "policy": version, **more})


@pytest.fixture
def log(tmp_path: Path, policy: Path) -> AuditLog:
    """The log of calls that the policy names."""
    folder = tmp_path / "calls"
    policy.write_text(f'{POLICY}\n[audit]\nfolder = "{folder}"\n')
    return AuditLog(str(folder))


def counts_in(page: str) -> dict[str, int]:
    words = text_of(page)
    found = re.search(r"Of (\d+) calls", words)
    assert found is not None, words
    numbers = {"calls": int(found[1])}
    for name in ("newly refused", "newly waiting for a person", "newly allowed", "hashes"):
        count = re.search(rf"{name}: (\d+)", words)
        assert count is not None
        numbers[name.rpartition(" ")[2]] = int(count[1])
    return numbers


def preview(browser: Browser, text: str) -> str:
    return browser.send("/policy/preview", text=text, version=version_of(browser)).text


def test_what_recorded_calls_would_meet_is_shown_before_saving(
    visit: Visit, policy: Path, log: AuditLog
) -> None:
    browser = visit()
    version = version_of(browser)
    text = policy.read_text()
    for _ in range(5):
        record(log, "search")
    for _ in range(3):
        record(log, "order", version, approval="ap_1", risk="high")
    record(log, "order", version, outcome="begun")  # the same call, in mode strict
    record(log, "docs_add", outcome="unknown", decision="deny")
    record(log, "gone")
    record(log, "****", outcome="unknown", decision="deny")
    log.append({"category": "approval", "actor": "ada#1", "action": "approved", "outcome": "ok"})
    log.close()

    same = preview(browser, text + "# a remark\n")
    assert counts_in(same) == {"calls": 9, "refused": 0, "person": 0, "allowed": 0, "hashes": 0}
    refused = preview(browser, text.replace('tools = ["search", "order"]', 'tools = ["order", "docs_*"]'))
    assert counts_in(refused) == {"calls": 9, "refused": 5, "person": 0, "allowed": 1, "hashes": 0}
    assert "5, was allowed" in text_of(refused)
    assert "not in the list classes.agent.tools" in text_of(refused)
    rule = "[[rules]]\nid = 'ask'\nwhen = \"tool.name == 'search'\"\nthen = 'ask'\n"
    asked = preview(browser, text + rule)
    assert counts_in(asked) == {"calls": 9, "refused": 0, "person": 5, "allowed": 0, "hashes": 0}
    assert "Asks by rules.ask" in text_of(asked)
    risen = preview(browser, text + '[approvals]\nfrom = "critical"\n')
    assert counts_in(risen) == {"calls": 9, "refused": 0, "person": 0, "allowed": 0, "hashes": 3}
    depends = preview(browser, text.replace("args.count > 10", "args.count > 5"))
    assert counts_in(depends) == {"calls": 9, "refused": 0, "person": 0, "allowed": 0, "hashes": 3}
    assert "args.count > 5" in text_of(depends)


def test_calls_of_another_policy_with_rules_about_arguments_are_not_guessed(
    visit: Visit, policy: Path, log: AuditLog
) -> None:
    record(log, "order", "a version before", approval="ap_1", risk="high")
    log.close()
    browser = visit()
    assert counts_in(preview(browser, policy.read_text() + "# x\n"))["hashes"] == 1


def test_the_scopes_of_a_caller_are_those_of_its_token(
    visit: Visit, policy: Path, log: AuditLog, database: Database
) -> None:
    token, _ = CallerTokens(database).create("ada", "agent", ["files:read"])
    record(log, "search", actor=token.principal)
    record(log, "search", actor="bob#1")
    log.close()
    browser = visit()
    rule = "[[rules]]\nid = 'scoped'\nwhen = \"!('files:read' in caller.scopes)\"\nthen = 'deny'\n"
    assert counts_in(preview(browser, policy.read_text() + rule))["refused"] == 1


def test_a_process_without_tools_uses_the_recorded_risk_and_says_so(
    visit: Visit, policy: Path, log: AuditLog, database: Database
) -> None:
    record(log, "search")
    record(log, "wipe", risk="high", approval="ap_1")
    log.close()
    alone = Dashboard(Sources(lambda: database, policy=PolicyEditor(str(policy))), AccessRules(None))
    browser = visit(at=alone)
    page = preview(browser, policy.read_text() + '[approvals]\nfrom = "never"\n')
    assert "the recorded risks are used" in html.unescape(page)
    assert "arguments in rules are not checked here" in html.unescape(page)
    assert counts_in(page) == {"calls": 2, "refused": 1, "person": 0, "allowed": 0, "hashes": 0}


def test_calls_before_the_last_day_are_not_compared_and_a_damaged_line_is_passed(
    visit: Visit, policy: Path, log: AuditLog
) -> None:
    record(log, "search", time="2001-01-01T00:00:00.000Z")
    record(log, "search")
    log.close()
    (segment,) = Path(log.folder).glob("*.jsonl")
    with segment.open("ab") as file:
        file.write(b'{"category":"mcp_server"\n[]\n\xff\n')
    browser = visit()
    assert counts_in(preview(browser, policy.read_text() + "# x\n"))["calls"] == 1


def test_a_policy_without_an_audit_log_is_said_to_have_none(visit: Visit, policy: Path) -> None:
    policy.write_text(POLICY + '\n[audit]\nmode = "off"\n')
    page = preview(visit(), policy.read_text() + "# x\n")
    assert "The policy has no audit log" in page


# --- who, and attacks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["viewer", "approver"])
def test_only_an_administrator_changes_the_policy_and_all_see_it(
    visit: Visit, policy: Path, recorded: Recorded, role: str
) -> None:
    browser = visit("vera", role)
    page = browser.get("/policy").text
    assert "args.count &gt; 10" in page
    assert "/policy/edit" not in page
    assert browser.get("/policy/edit").status_code == 403
    for path in ACTIONS:
        answer = browser.send(path, text=CHANGED, version="x")
        assert (answer.status_code, "Only an administrator" in answer.text) == (403, True)
    assert policy.read_text() == POLICY
    assert recorded() == []


@pytest.mark.parametrize("changed", [{"origin": "https://evil.example"}, {"origin": None}, {"token": ""}])
def test_a_form_of_another_site_changes_nothing(visit: Visit, policy: Path, changed: dict[str, Any]) -> None:
    browser = visit()
    version = version_of(browser)
    for path in ACTIONS:
        assert browser.send(path, text=CHANGED, version=version, **changed).status_code == 403
    assert policy.read_text() == POLICY


def test_no_text_becomes_an_element_or_an_attribute(visit: Visit, policy: Path, log: AuditLog) -> None:
    for name in ("search", HOSTILE):
        record(log, name, actor=HOSTILE, **{"class": HOSTILE})
    log.close()
    quoted = json.dumps(HOSTILE)
    hostile = (
        policy.read_text() + f"# {HOSTILE}\n[[rules]]\nwhen = 'true'\nthen = 'deny'\nreason = {quoted}\n"
    )
    browser = visit(HOSTILE)
    version = version_of(browser)
    pages = [
        browser.send("/policy/preview", text=hostile, version=version).text,
        browser.send("/policy/check", text=HOSTILE, version=HOSTILE).text,
        browser.send("/policy/check", text=HOSTILE, version=HOSTILE, headers={"hx-request": "true"}).text,
        browser.send("/policy/preview", text=hostile, version=HOSTILE).text,
        browser.send("/policy/edit", text=hostile, version=HOSTILE).text,
    ]
    assert "newly refused: 1" in pages[0]
    policy.write_text(hostile)
    pages += [browser.get(path).text for path in ("/policy", "/policy/edit", f"/policy?saved={HOSTILE}")]
    for page in pages:
        assert elements_that_no_page_has(page) == []
        assert "<b " not in page
        assert "49" not in re.findall(r"\{\{7\*7\}\}|\b49\b", page)
    assert "&lt;script&gt;" in pages[0]


def test_characters_that_deceive_are_marked_and_others_are_shown_as_they_are(
    visit: Visit, policy: Path
) -> None:
    policy.write_text(POLICY + '# \u202e "hidden" \\u202e C:\\path\twith tab\n')
    page = visit().get("/policy").text
    assert "\u202e" not in page
    assert "# <mark>\\u202e</mark> &#34;hidden&#34; \\u202e C:\\path\twith tab" in page


def test_a_secret_that_is_in_the_file_by_mistake_is_masked(visit: Visit, policy: Path) -> None:
    policy.write_text(POLICY + 'tokens = [{ id = "x", token = "frpc_abcdefghijkl_' + "A" * 43 + '" }]\n')
    page = visit("vera", "viewer").get("/policy").text
    assert "A" * 43 not in page


def test_a_file_that_other_parts_share_is_neither_shown_nor_changed(
    visit: Visit, database: Database, tmp_path: Path
) -> None:
    shared = tmp_path / "fastrpc.toml"
    content = 'token = "s3cret-that-others-use"\n[guard.expose]\ntools = 3\n'
    shared.write_text(content)
    sources = Sources(lambda: database, policy=PolicyEditor(str(shared)))
    browser = visit(at=Dashboard(sources, AccessRules(None)))
    page = browser.get("/policy").text
    assert "settings of other parts" in page
    assert "expected an array of texts" in page
    assert "s3cret" not in page
    assert browser.get("/policy/edit").status_code == 403
    shared.write_text(content := content.replace("3", "[]"))
    version = policy_file.version_of(content.encode())
    for path in ACTIONS:
        for text in ("x = 1", "[guard]\n"):
            for headers in ({}, {"hx-request": "true"}):
                answer = browser.send(path, text=text, version=version, headers=headers)
                assert (answer.status_code, "s3cret" in answer.text) == (403, False)
    assert shared.read_text() == content


def test_without_the_file_the_page_is_not_in_the_menu(visit: Visit, database: Database, policy: Path) -> None:
    assert 'href="/dashboard/policy"' in visit().get("/").text
    browser = visit(at=Dashboard(Sources(lambda: database), AccessRules(None)))
    assert 'href="/dashboard/policy"' not in browser.get("/").text
    assert browser.get("/policy").status_code == 404
    policy.unlink()
    answer = visit().get("/policy")
    assert (answer.status_code, "No such file" in answer.text) == (503, True)
