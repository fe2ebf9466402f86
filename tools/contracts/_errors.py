"""The failure of a verb: one exception, with the code by which clients act.

The codes are those that tachyon publishes, plus one for Vyper and four for failures to reach the engine.
`retry` is true only if the same request can succeed later without any change.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SOLC_FAILED = "COMPILER_SOLC_FAILED"
VYPER_FAILED = "COMPILER_VYPER_FAILED"
FORGE_FAILED = "COMPILER_FORGE_FAILED"
TEST_FAILED = "TEST_FORGE_FAILED"
ASSERTION_FAILED = "TEST_ASSERTION_FAILED"
CHAIN_NOT_FOUND = "CHAIN_NOT_FOUND"
CHAIN_RPC_FAILED = "CHAIN_RPC_FAILED"
SIMULATE_FAILED = "SIMULATE_FAILED"
DEPLOY_FAILED = "DEPLOY_FAILED"
CALL_FAILED = "CALL_FAILED"
ARTIFACT_NOT_FOUND = "ARTIFACT_NOT_FOUND"
WALLET_NOT_CONFIGURED = "WALLET_NOT_CONFIGURED"
WALLET_POLICY_DENIED = "WALLET_POLICY_DENIED"
INVALID_REQUEST = "INVALID_REQUEST"
INTERNAL_ERROR = "INTERNAL_ERROR"
ENGINE_UNAVAILABLE = "ENGINE_UNAVAILABLE"
ENGINE_UNAUTHORIZED = "ENGINE_UNAUTHORIZED"
ENGINE_PROTOCOL = "ENGINE_PROTOCOL"
ENGINE_TIMEOUT = "ENGINE_TIMEOUT"


class EngineError(Exception):
    """A verb has failed. `code` is one of those above, `details` a JSON object with further facts."""

    def __init__(
        self, code: str, message: str, *, retry: bool = False, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry = retry
        self.details = details


def invalid(parameter: str, expected: str, got: str) -> EngineError:
    """An INVALID_REQUEST that names the parameter, the expected and the received value."""
    return EngineError(INVALID_REQUEST, f"{parameter}: expected {expected}, got {got}")
