"""Replaces the Internet in tests of which addresses may be reached: names and addresses, by rules of tests.

    install({"names": {"page.test": [["127.0.0.2"]]}, "public": ["127.0.0.2"], "word": "drow"})

Each name has its answers in turn, the last one for ever; names that are not there are looked up as always.
A proxy's password is the word read backwards: where that is found, the proxy's side has put it.
Run as a module, this is the browser's process under the rule of the variable FAKE_DNS: a test has it
started instead of the real one (`_browser.WORKER`). No setting of fastrpc's can do this.
"""

from __future__ import annotations

import json
import os
from typing import Any

VARIABLE = "FAKE_DNS"


def install(rules: dict[str, Any]) -> None:
    """Have the checking proxies of this process follow the rules of a test."""
    from fastrpc import egress_proxy

    names = {name: [list(answer) for answer in answers] for name, answers in rules["names"].items()}
    resolve, is_public, is_own = egress_proxy._resolve, egress_proxy.is_public, egress_proxy._is_own

    async def resolve_by_rule(host: str, port: int) -> list[str]:
        answers = names.get(host)
        if answers is None:
            return await resolve(host, port)
        return answers.pop(0) if len(answers) > 1 else answers[0]

    egress_proxy._resolve = resolve_by_rule
    egress_proxy.token_urlsafe = lambda size: rules["word"][::-1]
    egress_proxy.is_public = lambda address: address in rules["public"] or is_public(address)
    egress_proxy._is_own = lambda address: str(address) not in rules["public"] and is_own(address)


if __name__ == "__main__":
    import runpy

    install(json.loads(os.environ[VARIABLE]))
    runpy.run_module("fastrpc.tools.agent._browser.worker", run_name="__main__", alter_sys=True)
