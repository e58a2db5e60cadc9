"""Where the present request comes from, for whoever writes an entry deep below a view.

The middleware keeps the address, and forgets at the end of a request what was kept; the API adds
the token that it let in. Behind a proxy the address is what the ASGI server takes from the proxy's
header, for proxies that it was told to trust. Outside of a request, as in a worker, there is none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import ip_address

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

current_address: ContextVar[str | None] = ContextVar("current_address", default=None)
current_token: ContextVar[str] = ContextVar("current_token", default="")
"""Name and beginning of the API token that acts for a person; empty where they act themselves."""

Answer = Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[object]]


@sync_and_async_middleware
def remember_source(get_response: Callable[[HttpRequest], object]) -> Answer:
    """Middleware: keep the address while the request is answered."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> object:
            with _source_of(request):
                return await get_response(request)

        return answer_async

    def answer(request: HttpRequest) -> HttpResponseBase:
        with _source_of(request):
            return get_response(request)  # type: ignore[return-value]

    return answer


@contextmanager
def _source_of(request: HttpRequest) -> Iterator[None]:
    """The request's address and, to begin with, no token; what was there before comes back."""
    address, token = current_address.set(_address_of(request)), current_token.set("")
    try:
        yield
    finally:
        current_token.reset(token)
        current_address.reset(address)


def _address_of(request: HttpRequest) -> str | None:
    """The peer's address; None where the server speaks through a socket file.

    Without the zone of a link-local one (`fe80::1%eth0`), which the database's type does not take.
    """
    try:
        return str(ip_address(request.META.get("REMOTE_ADDR", "").partition("%")[0]))
    except ValueError:
        return None
