"""HTTP to the server: retries where that is safe, answers checked, refusals as exceptions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import httpx2
from pydantic import ValidationError

from temper_client.config import Config
from temper_client.errors import RefusedError, UnreachableError
from temper_client.models import Answer, FieldProblem, ProblemDocument

T = TypeVar("T", bound=Answer)
R = TypeVar("R")
TIMEOUT = httpx2.Timeout(30.0, connect=5.0)
UPLOAD_TIMEOUT = httpx2.Timeout(600.0, connect=5.0)
RETRIED = frozenset({429, 500, 502, 503, 504})
LONGEST_WAIT_S = 10.0
Sleep = Callable[[float], None]
OnWait = Callable[[str, float], None]


def say_nothing(_: str, __: float) -> None:
    """Nobody wants to know about waiting."""


class Connection:
    """A connection that waits for a server that is restarting."""

    def __init__(
        self,
        config: Config,
        *,
        patience_s: float = 60.0,
        on_wait: OnWait = say_nothing,
        sleep: Sleep = time.sleep,
    ) -> None:
        self.url = config.url
        self.patience_s = patience_s
        self.on_wait = on_wait
        self._sleep = sleep
        self._http = httpx2.Client(
            base_url=f"{config.url}/api/v1",
            headers={"Authorization": f"Bearer {config.token}", "User-Agent": "temper-client"},
            timeout=TIMEOUT,
        )

    def close(self) -> None:
        """Let go of the sockets."""
        self._http.close()

    def ask(self, model: type[T], method: str, path: str, **options: Any) -> T:
        """A request whose answer is that model. Raises RefusedError or UnreachableError."""
        response = self.send(method, path, **options)
        try:
            return model.model_validate_json(response.content)
        except ValidationError as error:
            raise UnreachableError(
                f"{self.url} answers, but not as this version of the client expects: "
                f"{error.error_count()} fields differ. Is it a Temper server of the same version?"
            ) from error

    def send(
        self, method: str, path: str, *, is_safe: bool = False, **options: Any
    ) -> httpx2.Response:
        """A request; `is_safe` says that sending it twice does no harm, as every GET."""
        if method == "GET" or is_safe:
            return self.patiently(lambda: self._once(method, path, **options))
        return self._once(method, path, **options)

    def open_body(self, path: str, headers: Mapping[str, str]) -> httpx2.Response:
        """A GET whose body is read bit by bit and closed by the caller; tried once.

        Raises RefusedError or UnreachableError.
        """
        return self._once("GET", path, headers=headers, is_streamed=True)

    def patiently(self, request: Callable[[], R]) -> R:
        """Try until it works or patience ends."""
        waited, pause = 0.0, 0.5
        while True:
            try:
                return request()
            except (UnreachableError, RefusedError) as error:
                if isinstance(error, RefusedError) and not error.may_pass:
                    raise
                if waited >= self.patience_s:
                    raise
                self.on_wait(str(error), pause)
            self._sleep(pause)
            waited += pause
            pause = min(pause * 2, LONGEST_WAIT_S)

    def silence(self, error: Exception) -> UnreachableError:
        """What the caller hears of a connection that failed."""
        return UnreachableError(
            f"{self.url} does not answer: {str(error) or type(error).__name__}."
        )

    def _once(
        self, method: str, path: str, *, is_streamed: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send it. Raises RefusedError or UnreachableError."""
        patience = options.pop("timeout", httpx2.USE_CLIENT_DEFAULT)
        request = self._http.build_request(method, path, timeout=patience, **options)
        try:
            response = self._http.send(request, stream=is_streamed)
            if response.status_code >= 300:
                response.read()
        except httpx2.HTTPError as error:
            raise self.silence(error) from error
        if response.status_code >= 400:
            raise _refusal(response)
        if response.status_code >= 300:
            raise UnreachableError(
                f"{self.url} redirects to {response.headers.get('Location', 'nowhere')}; give that "
                "address instead."
            )
        return response


def _refusal(response: httpx2.Response) -> RefusedError:
    """What the server said, or the bare status where something else answered."""
    status = response.status_code
    may_pass = status in RETRIED or "Retry-After" in response.headers
    try:
        problem = ProblemDocument.model_validate_json(response.content)
    except ValidationError:
        words = f"The server answered {status} {response.reason_phrase}."
        return RefusedError(status, words, [], may_pass=may_pass)
    return RefusedError(
        status, problem.detail, list[FieldProblem](problem.errors), may_pass=may_pass
    )


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Query parameters without those that are left out."""
    return {name: value for name, value in values.items() if value not in (None, "", [])}
