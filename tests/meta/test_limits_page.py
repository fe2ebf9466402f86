"""docs/limits.md says what the code bounds: the figures are those of the constants."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

PAGE = Path(__file__, "../../../docs/limits.md").resolve()
KIB, MIB = 1024, 1024 * 1024

SAID = {
    "transports.stdio.MAX_LINE": (16 * MIB, "16 MiB (`max_body=`)"),
    "transports.http.app.MAX_BODIES": (256 * MIB, "256 MiB (`max_bodies=`)"),
    "transports.http.request.SMALL_BODY": (64 * KIB, "and 64 KiB of each that do not count"),
    "engine.outbound.MOST_UNSENT": (64 * MIB, "as many as fit | 64 MiB | they are dropped, logged once"),
    "transports.http.exchange.UNREAD_LIMIT": (4 * MIB, "as many as fit | 4 MiB | they are dropped"),
    "transports.http.streams.SESSION_EVENTS": (2000, "| 2,000; 1,000 of the standalone stream"),
    "transports.http.sessions.STANDALONE_EVENTS": (1000, "1,000 of the standalone stream; 64 streams"),
    "transports.http.streams.SESSION_BYTES": (4 * MIB, "| 4 MiB; 1 MiB |"),
    "transports.http.streams.ALL_EVENTS": (1_000_000, "| 1,000,000 | 256 MiB |"),
    "transports.http.streams.ALL_BYTES": (256 * MIB, "| 1,000,000 | 256 MiB |"),
    "quotas.SESSION_BYTES": (MIB, "1 MiB; 16 MiB a caller, 128 MiB in all"),
    "quotas.CALLER_BYTES": (16 * MIB, "1 MiB; 16 MiB a caller, 128 MiB in all"),
    "quotas.ALL_BYTES": (128 * MIB, "1 MiB; 16 MiB a caller, 128 MiB in all"),
    "transports.http.sessions.EXCHANGES_KEPT": (16, "16 a session, 1,024 in all"),
    "transports.http.sessions.ALL_EXCHANGES_BYTES": (64 * MIB, "64 MiB in all; none of one that has had"),
    "transports.http.exchange.IDLE_EXCHANGES": (256, "256 for each version"),
    "transports.http.remembered.HEADS_BYTES": (4 * MIB, "4 MiB, 8 KiB each"),
    "engine.known_answers.UNKNOWN_KEPT": (64, "64 a connection"),
    "guard.policy.decisions.MOST_KEPT": (4096, "4,096 a class of callers"),
    "guard.policy.decisions.MOST_KEPT_IN_ALL": (65_536, "4,096 a class of callers, 65,536 in all"),
    "guard.policy.decisions.LONGEST_KEPT": (1024, "1,024 characters a name or URI"),
    "engine.list_filter.MOST_BYTES": (16 * MIB, "256 classes | 16 MiB"),
    "guard.approvals.asking.MOST_HELD": (1000, "1,000; 20 of a caller"),
    "guard.approvals.binding.LONGEST_SHOWN": (256 * KIB, "256 Ki characters at most"),
    "guard.approvals.store.MOST_OVER": (1000, "1,000, for `keep_days` | 16 Mi characters"),
    "guard.approvals.store.MOST_OVER_CHARACTERS": (16 * MIB, "1,000, for `keep_days` | 16 Mi characters"),
    "guard.approvals.webhook.MOST_WAITING_BYTES": (16 * MIB, "to a webhook | as many as fit | 16 MiB"),
    "guard.audit.log.MOST_BYTES": (128 * MIB, "65,536 in the queue, as many being written | 128 MiB in all"),
    "guard.audit.verify.MOST_KEPT": (10_000, "10,000 faults and as many notes | 128 KiB a line"),
    "guard.audit.verify.LONGEST_LINE": (128 * KIB, "10,000 faults and as many notes | 128 KiB a line"),
    "guard.audit.delivery.CAPACITY": (1000, "checkpoints that wait for a target | 1,000"),
    "telemetry.observers.CAPACITY": (8192, "that no observer has read | 8,192"),
    "telemetry.access_log.CAPACITY": (MIB, "are not written | as many as fit | 1 MiB, and 1 MiB"),
    "telemetry.statistics.MOST_NAMES": (200, "names in `--stats` | 200, and 32"),
    "errors.LONGEST_EXCERPT": (200, "200 characters of a name"),
    "diagnostics.LONGEST_RECORD": (64 * KIB, "any other record in the log | | 64 Ki characters"),
    "diagnostics.MOST_REMEMBERED": (1000, "logged once | 1,000 for each source"),
    "compat.middleware.rate_limiting.MOST_CLIENTS": (10_000, "`RateLimitingMiddleware` | 10,000"),
    "compat.middleware.caching.MOST_BYTES": (64 * MIB, "10,000 | 64 MiB, 1 MiB each"),
    "_core.client_stream.LONGEST_LINE": (64 * MIB, "one body | as for servers | 64 MiB"),
    "client.http.wire.MOST_READING": (256 * MIB, "512 connections | 256 MiB, and 64 KiB of each"),
    "client.http.wire.SMALL": (64 * KIB, "512 connections | 256 MiB, and 64 KiB of each"),
    "client.http.events.LONGEST_NAME": (4 * KIB, "the type and the id of an event | | 4 KiB each"),
    "client.output_schemas.MOST_EVALUATED": (1_000_000, "evaluated for one result | 1,000,000 |"),
    "protocol.followed_pages.MOST_PAGES": (1000, "1,000 pages"),
    "protocol.followed_pages.MOST_BYTES": (64 * MIB, "where a cursor is repeated | 64 MiB of memory"),
    "client.http.carrier.MOST_UNSENT": (64 * MIB, "64 MiB: requests, notifications and responses alike"),
    "client.server_messages.MOST_ANSWERING": (256, "being answered | 256 | 64 MiB of memory"),
    "client.server_messages.MOST_ANSWERING_BYTES": (64 * MIB, "being answered | 256 | 64 MiB of memory"),
    "client.server_messages.MOST_HANDLING_BYTES": (
        64 * MIB,
        "handlers work on | as many as fit | 64 MiB of memory",
    ),
    "client.server_messages.TASK_BYTES": (4 * KIB, "64 MiB of memory, plus 4 KiB each"),
    "client.http.carrier.MOST_POSTS": (64, "over HTTP | 64 at a time, for 30 s"),
    "client.http.carrier.POST_SECONDS": (30.0, "over HTTP | 64 at a time, for 30 s"),
    "client.http.carrier.POST_BYTES": (8 * KIB, "64 MiB, plus 8 KiB each"),
    "proxy.requests.MOST_QUESTIONS": (64, "during one call | 64 | 16 MiB of memory"),
    "proxy.requests.MOST_QUESTION_BYTES": (16 * MIB, "during one call | 64 | 16 MiB of memory"),
    "client.listening.MOST_UNREAD": (1000, "program has not read | 1,000 | 1 MiB of memory"),
    "client.listening.MOST_UNREAD_BYTES": (MIB, "program has not read | 1,000 | 1 MiB of memory"),
    "client.stdio.LAST_WORDS": (4 * KIB, "16 KiB a piece; 4 KiB are kept"),
    "transports.http.session_router.MOST_UNSENT": (16 * MIB, "those of 2 seconds | 16 MiB, and as many"),
    "transports.http.session_router.SHARE_SECONDS": (2.0, "does not read them | those of 2 seconds"),
    "transports.http.session_router.MOST_OF_ONE": (4 * MIB, "those of 2 seconds | 4 MiB; 16 MiB in all"),
    "transports.http.session_sharing.MOST_UNDELIVERED": (MIB, "have taken it | as many as fit | 1 MiB"),
    "client.http.stateless.MOST_LINES": (1024, "URIs whose headers are | 1,024 | 1 KiB each"),
    "client.http.stateless.LONGEST_LINES": (KIB, "URIs whose headers are | 1,024 | 1 KiB each"),
    "client.http.pool.MOST_CONNECTIONS": (512, "512, 256 of them idle"),
    "client.http.cookies.MOST_COOKIES": (50, "| 50 | 4 KiB each |"),
    "client.http.session.SHORTEST_PAUSE": (0.2, "at least 0.2 s"),
    "client.http.session.LONGEST_PAUSE": (30.0, "at most 30 s"),
}


@pytest.mark.parametrize("name", SAID)
def test_the_page_of_limits_says_what_the_code_does(name: str) -> None:
    value, said = SAID[name]
    module, _, constant = name.rpartition(".")
    assert getattr(importlib.import_module(f"fastrpc.{module}"), constant) == value
    assert said in PAGE.read_text()
