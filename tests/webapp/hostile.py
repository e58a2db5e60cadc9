"""Names and texts that break careless pages; used by page, form and rollout tests."""

from __future__ import annotations

NAMES = (
    "<b>x</b>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "</textarea><script>alert(1)</script>",
    "javascript:alert(1)",
    "{{ 7*7 }} {% load x %}",
    "'; drop table runs_run; --",
    "$latex$ 100% a//b ../.. a\\b",
    "奖励/正确率",
    "مكافأة",
    "\u202eevil",
    "👩‍👩‍👧 family",
    "e\u0301 and \u00e9",
    " padded ",
    "x" * 120,
)
RAW_MARKUP = ("<b>x</b>", "<img src=x", "<svg onload", "<script>alert")
"""What must never stand in a page as it is."""
