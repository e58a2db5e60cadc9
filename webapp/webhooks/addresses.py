"""Where a webhook may connect to: no address of this machine, of its network or of its cloud.

Called by `sending`. A person types the URL and the server fetches it, so without this a webhook
could reach what only the server can (server-side request forgery). The name is resolved once and
the connection goes to the address that was judged: a name that changes its address in between
gains nothing (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import socket
from typing import NamedTuple
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
DEFAULT_PORTS = {"http": 80, "https": 443}
LOOPBACK_NAME, LOOPBACK = "localhost", ipaddress.IPv4Address("127.0.0.1")
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class TargetRefused(Exception):
    """Nothing is sent to that URL; the text says why."""


class Target(NamedTuple):
    """A URL taken apart."""

    scheme: str
    host: str
    port: int
    path: str
    """Path and query."""

    @property
    def host_header(self) -> str:
        """What the Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def parse_target(url: str) -> Target:
    """The parts of a URL. Raises TargetRefused for one that cannot be a webhook's."""
    try:
        parts = urlsplit(url)
        port = parts.port
        if port == 0:
            raise ValueError("nothing listens on port 0")
        host = (parts.hostname or "").encode("idna").decode() if parts.hostname else ""
    except (ValueError, UnicodeError) as error:
        raise TargetRefused(_("The URL cannot be read.")) from error
    if parts.scheme not in DEFAULT_PORTS or not host:
        raise TargetRefused(_("The URL must begin with https:// or http:// and name a host."))
    if parts.username or parts.password:
        raise TargetRefused(_("Leave user name and password out of the URL; messages are signed."))
    if not url.isascii() or any(character <= " " for character in url):
        raise TargetRefused(_("The URL holds characters that must be percent-encoded."))
    path = parts.path or "/"
    target = Target(
        parts.scheme,
        host,
        DEFAULT_PORTS[parts.scheme] if port is None else port,
        f"{path}?{parts.query}" if parts.query else path,
    )
    if (literal := _literal(host)) is not None:
        _refuse_private(literal)
    return target


def resolve(target: Target) -> str:
    """The one address to connect to. Raises TargetRefused, also when any address is private."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TargetRefused(f"The host {target.host} cannot be found.") from error
    addresses = [str(entry[4][0]).partition("%")[0] for entry in found]
    for address in addresses:
        _refuse_private(ipaddress.ip_address(address))
    return addresses[0]


def is_public(address: Address) -> bool:
    """Whether it is an address of the open internet, whatever it is wrapped in."""
    if isinstance(address, ipaddress.IPv6Address):
        inner: Address | None = address.ipv4_mapped or address.sixtofour
        if address in NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if address.teredo is not None:
            inner = address.teredo[1]
        if inner is not None:
            return is_public(inner)
        if address.is_site_local:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved)


def _refuse_private(address: Address) -> None:
    """Raise TargetRefused for an address that is not public, unless the setting allows it."""
    if not settings.WEBHOOK_ALLOW_PRIVATE and not is_public(address):
        raise TargetRefused(
            _(
                "%(address)s is an address of a private network; webhooks go to public ones. "
                "TEMPER_WEBHOOK_ALLOW_PRIVATE=true allows it for everybody."
            )
            % {"address": address}
        )


def _literal(host: str) -> Address | None:
    """The address that a host name is, where it is one; also 127.1, 0x7f000001 and localhost.

    Every name below localhost is this machine (RFC 6761, section 6.3).
    """
    host = host.removesuffix(".")  # the root of names: 127.0.0.1. is 127.0.0.1
    if host.lower().rpartition(".")[2] == LOOPBACK_NAME:
        return LOOPBACK
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None
