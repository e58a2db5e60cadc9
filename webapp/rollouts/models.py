"""Rollouts as rows: an index over the rollout files of the run directory, made for browsing.

Written by `webapp.rollouts.services`, read by the rollouts page. Token ids and log-probabilities
stay in the files: a page never shows them and they would be most of the bytes.
"""

from __future__ import annotations

from django.db import models


class RolloutGroup(models.Model):
    """All completions of one prompt at one step."""

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="rollout_groups")
    attempt = models.PositiveIntegerField()
    group_id = models.CharField(max_length=200)
    step = models.PositiveBigIntegerField()
    stage = models.CharField(max_length=60)
    kind = models.CharField(max_length=10)
    domain = models.CharField(max_length=120)
    prompt_id = models.CharField(max_length=200)
    messages = models.JSONField()
    prompt_text = models.TextField()
    prompt_tokens = models.PositiveIntegerField()
    answer = models.TextField()
    reward_mean = models.FloatField(null=True)
    reward_std = models.FloatField(null=True)
    zero_spread = models.BooleanField()
    size = models.PositiveIntegerField()
    passed = models.PositiveIntegerField()
    unscored = models.PositiveIntegerField()
    truncated = models.PositiveIntegerField()
    superseded = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "attempt", "group_id"], name="one_row_a_rollout_group"
            )
        ]
        indexes = [models.Index(fields=["run", "kind", "step", "id"], name="groups_of_a_step")]

    def __str__(self) -> str:
        return f"{self.kind} group {self.group_id} at step {self.step}"


class Rollout(models.Model):
    """One completion with everything that was made of it."""

    group = models.ForeignKey(RolloutGroup, on_delete=models.CASCADE, related_name="rollouts")
    index = models.PositiveIntegerField()
    completion = models.TextField()
    text = models.TextField()
    tokens = models.PositiveIntegerField()
    finish_reason = models.CharField(max_length=10)
    scores = models.JSONField()
    reward = models.FloatField(null=True)
    advantage = models.FloatField(null=True)
    passed = models.BooleanField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "index"], name="one_row_a_rollout")]

    def __str__(self) -> str:
        return f"rollout {self.index} of group {self.group_id}"
