"""Addresses of the network, and connections to them."""

import http.client
import ipaddress
import ssl
from urllib.parse import SplitResult


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is loopback.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def open_connection(address: SplitResult, timeout: float) -> http.client.HTTPConnection:
    """Return a connection to the host of an address, encrypted for https."""
    assert address.hostname is not None
    if address.scheme == "http":
        return http.client.HTTPConnection(address.hostname, address.port, timeout=timeout)
    context = ssl.create_default_context()
    return http.client.HTTPSConnection(address.hostname, address.port, timeout=timeout, context=context)
