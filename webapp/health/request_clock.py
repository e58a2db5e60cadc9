"""How long requests take, by view. Filled by the middleware, read by the figures.

One web process serves an installation's host, so the counts of this process are all there are.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge, Histogram, disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call]  # when a counter began is not worth a series
REGISTRY = CollectorRegistry()
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

REQUEST_SECONDS = Histogram(
    "temper_request_seconds",
    "Seconds from a request to the beginning of its answer.",
    ("method", "view", "status"),
    buckets=BUCKETS_S,
    registry=REGISTRY,
)
IN_PROGRESS = Gauge(
    "temper_requests_in_progress", "Requests that wait for an answer now.", registry=REGISTRY
)


def note_request(method: str, view: str, status: int, seconds: float) -> None:
    """Count one. Labels are bounded: what a stranger can invent becomes one word."""
    REQUEST_SECONDS.labels(
        method if method in METHODS else "other", view or "unmatched", f"{status // 100}xx"
    ).observe(seconds)
