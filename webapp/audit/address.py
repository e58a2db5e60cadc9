"""The address that the present request came from, for whoever writes an entry deep below a view.

Set by the middleware. Behind a proxy it is what the ASGI server takes from the proxy's header, for
proxies that it was told to trust. Outside of a request, as in a worker, there is none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from ipaddress import ip_address

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

current_address: ContextVar[str | None] = ContextVar("current_address", default=None)

Answer = Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[object]]


@sync_and_async_middleware
def remember_address(get_response: Callable[[HttpRequest], object]) -> Answer:
    """Middleware: keep the address while the request is answered."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> object:
            token = current_address.set(_address_of(request))
            try:
                return await get_response(request)
            finally:
                current_address.reset(token)

        return answer_async

    def answer(request: HttpRequest) -> HttpResponseBase:
        token = current_address.set(_address_of(request))
        try:
            return get_response(request)  # type: ignore[return-value]
        finally:
            current_address.reset(token)

    return answer


def _address_of(request: HttpRequest) -> str | None:
    """The peer's address; None where the server speaks through a socket file.

    Without the zone of a link-local one (`fe80::1%eth0`), which the database's type does not take.
    """
    try:
        return str(ip_address(request.META.get("REMOTE_ADDR", "").partition("%")[0]))
    except ValueError:
        return None
