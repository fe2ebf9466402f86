"""`RateLimitingMiddleware` (a token bucket) and `SlidingWindowRateLimitingMiddleware`: refuse requests beyond
a rate, with error -32000. A look at a clock for each request; the state is this process's own."""

from __future__ import annotations

from collections import deque
from time import monotonic

from fastrpc.compat.errors import McpError
from fastrpc.compat.middleware.base import Middleware, MiddlewareContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc.compat.middleware.base import CallNext

    ClientId = Callable[[MiddlewareContext[Any]], "str | Awaitable[str]"]

REFUSED = -32000
ANYBODY = "global"
"""The client where no function distinguishes clients."""


class RateLimitError(McpError):
    """A request is beyond the rate."""

    def __init__(self, message: str = "Rate limit exceeded") -> None:
        super().__init__(REFUSED, message)


class TokenBucketRateLimiter:
    """A bucket of `capacity` tokens, into which `refill_rate` flow each second."""

    def __init__(self, capacity: int, refill_rate: float) -> None:
        self.capacity = capacity
        self.refill_rate = refill_rate
        self.tokens: float = capacity
        self.last_refill = monotonic()

    def take(self, tokens: int = 1) -> bool:
        """Take tokens, if they are there."""
        now = monotonic()
        self.tokens = min(self.capacity, self.tokens + (now - self.last_refill) * self.refill_rate)
        self.last_refill = now
        if self.tokens < tokens:
            return False
        self.tokens -= tokens
        return True

    async def consume(self, tokens: int = 1) -> bool:
        return self.take(tokens)


class SlidingWindowRateLimiter:
    """At most `max_requests` within any `window_seconds`."""

    def __init__(self, max_requests: int, window_seconds: float) -> None:
        self.max_requests = max_requests
        self.window_seconds = window_seconds
        self.requests: deque[float] = deque()

    def take(self) -> bool:
        """Count a request, if it is allowed."""
        now = monotonic()
        while self.requests and self.requests[0] < now - self.window_seconds:
            self.requests.popleft()
        if len(self.requests) >= self.max_requests:
            return False
        self.requests.append(now)
        return True

    async def is_allowed(self) -> bool:
        return self.take()


MOST_CLIENTS = 10_000
"""Clients with a limiter; beyond that the one that has sent nothing for the longest time begins anew."""


class _PerClient(Middleware):
    """Has a limiter for each client that `get_client_id` distinguishes."""

    def __init__(self, get_client_id: ClientId | None) -> None:
        self.get_client_id = get_client_id
        self.limiters: dict[str, Any] = {}

    async def client_of(self, context: MiddlewareContext[Any]) -> str:
        """Return the client whose limiter counts a request."""
        if self.get_client_id is None:
            return ANYBODY
        found = self.get_client_id(context)
        return found if isinstance(found, str) else await found

    async def limiter_of(self, context: MiddlewareContext[Any]) -> tuple[str, Any]:
        """Return the client of a request, and its limiter."""
        client = await self.client_of(context)
        limiter = self.limiters.pop(client, None) or self.new_limiter()
        self.limiters[client] = limiter  # the most recent one
        if len(self.limiters) > MOST_CLIENTS:
            del self.limiters[next(iter(self.limiters))]
        return client, limiter

    def new_limiter(self) -> Any:
        """Return a limiter for a client that has none yet."""
        raise NotImplementedError


class RateLimitingMiddleware(_PerClient):
    """Allows `max_requests_per_second` in the long run and `burst_capacity`, by default twice as many, at
    once: for each client that `get_client_id` names, or with `global_limit` for all together."""

    def __init__(
        self,
        max_requests_per_second: float = 10.0,
        burst_capacity: int | None = None,
        get_client_id: ClientId | None = None,
        global_limit: bool = False,
    ) -> None:
        super().__init__(get_client_id)
        self.max_requests_per_second = max_requests_per_second
        usual = int(max_requests_per_second * 2)
        self.burst_capacity = burst_capacity or (max(1, usual) if max_requests_per_second > 0 else usual)
        self.global_limit = global_limit
        if global_limit:
            self.global_limiter = self.new_limiter()

    def new_limiter(self) -> TokenBucketRateLimiter:
        return TokenBucketRateLimiter(self.burst_capacity, self.max_requests_per_second)

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        if self.global_limit:
            if not self.global_limiter.take():
                raise RateLimitError(
                    f"Rate limit: more than {self.max_requests_per_second:g} requests a second"
                )
            return await call_next(context)
        client, limiter = await self.limiter_of(context)
        if not limiter.take():
            raise RateLimitError(
                f"Rate limit: more than {self.max_requests_per_second:g} requests a second of client {client}"
            )
        return await call_next(context)


class SlidingWindowRateLimitingMiddleware(_PerClient):
    """Allows `max_requests` of each client within any `window_minutes`."""

    def __init__(
        self, max_requests: int, window_minutes: int = 1, get_client_id: ClientId | None = None
    ) -> None:
        super().__init__(get_client_id)
        self.max_requests = max_requests
        self.window_seconds = window_minutes * 60

    def new_limiter(self) -> SlidingWindowRateLimiter:
        return SlidingWindowRateLimiter(self.max_requests, self.window_seconds)

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        client, limiter = await self.limiter_of(context)
        if not limiter.take():
            raise RateLimitError(
                f"Rate limit: more than {self.max_requests} requests in {self.window_seconds:g} s"
                f" of client {client}"
            )
        return await call_next(context)
