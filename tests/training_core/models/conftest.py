"""Fixtures of this folder."""

from __future__ import annotations

from tests.training_core.models.policies import one_thread, policy

__all__ = ["one_thread", "policy"]
