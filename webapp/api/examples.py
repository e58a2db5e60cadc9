"""An example of what each operation takes and gives, shown in `/api/v1/docs`.

Read by `webapp.api.openapi`. Each is checked against the schema of its operation by a test.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from training_core.contract.presets import TINY_COPY

RUN: dict[str, Any] = {
    "id": "019ae0c1-5f5e-7a10-9c5e-3d1f0a9b2c44",
    "number": 12,
    "name": "Tiny model, one minute",
    "project": "main",
    "owner": "ada",
    "state": "running",
    "cause": "started",
    "message": "",
    "advice": "",
    "is_terminal": False,
    "step": 61,
    "total_steps": 120,
    "stage": "rl",
    "phase": {
        "phase": "rollout",
        "step": 62,
        "done": 64,
        "total": 128,
        "unit": "rollouts",
        "tokens_per_s": 812.5,
    },
    "eta_s": 41.2,
    "latest": {"reward": 0.62, "kl": 0.013},
    "preset": "tiny-model",
    "parent": None,
    "attempt": 1,
    "created_at": "2026-12-01T09:00:00Z",
    "queued_at": "2026-12-01T09:00:00Z",
    "started_at": "2026-12-01T09:00:01Z",
    "finished_at": None,
    "archived_at": None,
}
VERSION: dict[str, Any] = {
    "id": "6b0f7b1e-1111-4000-8000-000000000000",
    "number": 1,
    "content_hash": "9f2c51d0",
    "record_count": 1000,
    "train_count": 800,
    "held_out_count": 200,
    "duplicate_count": 3,
    "created_at": "2026-12-01T08:00:00Z",
}
DATASET: dict[str, Any] = {
    "id": 3,
    "name": "school sums",
    "project": "main",
    "owner": "ada",
    "created_at": "2026-12-01T08:00:00Z",
    "versions": [VERSION],
}
IMPORT: dict[str, Any] = {
    "id": "6b0f7b1e-2222-4000-8000-000000000000",
    "state": "queued",
    "name": "school sums",
    "project": "main",
    "owner": "ada",
    "file_name": "sums.csv",
    "size_bytes": 24_000,
    "done": 0,
    "total": 48_000,
    "row_count": 0,
    "error_count": 0,
    "message": "",
    "errors": [],
    "columns": None,
    "dataset": None,
    "version": None,
    "created_at": "2026-12-01T08:00:00Z",
    "finished_at": None,
}
EXPORT: dict[str, Any] = {
    "id": "019ae0c1-7777-7a10-9c5e-3d1f0a9b2c44",
    "run": 12,
    "project": "main",
    "step": 60,
    "dtype": "float32",
    "owner": "ada",
    "state": "queued",
    "message": "",
    "advice": "",
    "doing": "",
    "done": 0,
    "total": 0,
    "folder": "temper-run-12-step-60-float32",
    "parameters": 0,
    "size_bytes": 0,
    "files": [],
    "check": None,
    "created_at": "2026-12-01T09:02:00Z",
    "finished_at": None,
    "expires_at": None,
}
READY_EXPORT: dict[str, Any] = {
    **EXPORT,
    "state": "ready",
    "parameters": 821_120,
    "size_bytes": 3_284_480,
    "files": [{"name": "model.safetensors", "size": 3_284_480, "sha256": "9f2c51d0"}],
    "check": {"tokens": 31, "largest_difference": 0.0, "same_choice": 31},
    "finished_at": "2026-12-01T09:02:05Z",
    "expires_at": "2026-12-08T09:02:05Z",
}
GROUP: dict[str, Any] = {
    "id": 907,
    "group_id": "train-61-0",
    "step": 61,
    "stage": "rl",
    "kind": "train",
    "domain": "numbers/copy",
    "prompt_id": "p61-0",
    "messages": [{"role": "user", "content": "Calculate 42."}],
    "answer": "42",
    "reward_mean": 0.65,
    "reward_std": 0.49,
    "zero_spread": False,
    "size": 2,
    "passed": 1,
    "unscored": 0,
    "truncated": 0,
}
ROLLOUT: dict[str, Any] = {
    "index": 0,
    "completion": "<answer>42</answer><|im_end|>",
    "text": "<answer>42</answer>",
    "tokens": 14,
    "finish_reason": "eos",
    "reward": 1.0,
    "advantage": 0.71,
    "passed": True,
    "scores": [
        {
            "name": "correctness",
            "weight": 0.7,
            "status": "ok",
            "value": 1.0,
            "explanation": "42 equals 42.",
        }
    ],
}
ESTIMATE = {"value": 0.65, "low": 0.55, "high": 0.74, "n": 96}
PRESET: dict[str, Any] = {
    "slug": TINY_COPY.slug,
    "title": TINY_COPY.title,
    "teaches": TINY_COPY.teaches,
    "expect": TINY_COPY.expect,
    "minutes": TINY_COPY.minutes,
    "spec": TINY_COPY.spec.model_dump(mode="json"),
}
CURVES: dict[str, Any] = {
    "x": {"kind": "step", "title": "step", "unit": "steps"},
    "smoothing_weight": 0.0,
    "window": {"from": None, "to": None},
    "curves": [
        {
            "run": {"id": RUN["id"], "number": 12, "name": RUN["name"]},
            "metric": {"name": "reward", "unit": "", "direction": "up", "meaning": "Mean reward."},
            "points_in_window": 1,
            "points_here": 1,
            "every_point": True,
            "points": [
                {
                    "step": 61,
                    "time": "2026-12-01T09:00:31+00:00",
                    "x": 61.0,
                    "value": 0.62,
                    "smoothed": None,
                }
            ],
        }
    ],
}


class Example(NamedTuple):
    """One operation's example."""

    answered: Any = None
    """JSON that comes back."""
    sent: Any = None
    """JSON body that is sent."""


EXAMPLES: dict[str, Example] = {
    "get_me": Example(
        {
            "user": "ada",
            "is_superuser": False,
            "token": "nightly",
            "scopes": ["read", "launch"],
            "expires_at": "2027-03-01T09:00:00Z",
            "projects": [
                {"slug": "main", "name": "Main", "role": "researcher", "is_archived": False}
            ],
        }
    ),
    "list_presets": Example({"items": [PRESET]}),
    "get_preset": Example(PRESET),
    "list_workers": Example(
        {
            "workers": [
                {
                    "name": "train@host-a",
                    "host": "host-a",
                    "state": "busy",
                    "words": "",
                    "queues": ["train"],
                    "slots": 1,
                    "devices": ["2 CPU cores"],
                    "run": 12,
                    "seen_at": "2026-12-01T09:00:30Z",
                }
            ],
            "queues": [{"name": "train", "workers": 1, "slots": 1, "busy": 1, "waiting": 0}],
        }
    ),
    "list_runs": Example({"items": [RUN], "next_cursor": None}),
    "get_run": Example(RUN),
    "get_spec": Example(PRESET["spec"]),
    "get_spec_yaml": Example("name: Tiny model, one minute\n"),
    "get_history": Example(
        {
            "attempts": [
                {
                    "number": 1,
                    "worker": "train@host-a",
                    "device": "cpu",
                    "started_at": "2026-12-01T09:00:01Z",
                    "ended_at": None,
                    "start_step": 0,
                    "last_step": 61,
                    "outcome": "",
                    "cause": "",
                    "message": "",
                    "advice": "",
                }
            ],
            "events": [
                {
                    "id": 41,
                    "at": "2026-12-01T09:00:00Z",
                    "kind": "state",
                    "from_state": "draft",
                    "to_state": "queued",
                    "actor": "ada",
                    "cause": "launched",
                    "data": {"message": "Launched by ada."},
                }
            ],
        }
    ),
    "launch_run": Example(RUN, PRESET["spec"]),
    "check_spec": Example(
        {
            "name": RUN["name"],
            "project": "main",
            "steps": 120,
            "rollouts": 7680,
            "most_tokens": 184_320,
            "disk_bytes": 60_000_000,
            "waiting": 0,
            "slots": 1,
            "warnings": [],
        },
        PRESET["spec"],
    ),
    "restart_run": Example({**RUN, "number": 13, "parent": 12}, {"checkpoint": "best"}),
    "stop_run": Example({**RUN, "state": "stopping"}),
    "pause_run": Example({**RUN, "state": "pausing"}),
    "resume_run": Example({**RUN, "state": "queued", "phase": None}),
    "evaluate_run": Example(RUN),
    "checkpoint_run": Example(RUN),
    "archive_run": Example(
        {**RUN, "state": "succeeded", "phase": None, "archived_at": "2026-12-01T12:00:00Z"}
    ),
    "unarchive_run": Example({**RUN, "state": "succeeded", "phase": None}),
    "delete_run": Example(),
    "list_metrics": Example(
        {
            "items": [
                {
                    "name": "reward",
                    "section": "Reward",
                    "unit": "",
                    "direction": "up",
                    "meaning": "Mean total reward of the step's completions.",
                }
            ]
        }
    ),
    "get_curves": Example(CURVES),
    "get_curves_csv": Example(
        "run,run_name,metric,step,time,value\n12,a,reward,61,2026-12-01T09:00:31+00:00,0.62\n"
    ),
    "get_logs": Example({"attempt": 1, "text": "step 61\n", "start": 0, "end": 8, "size": 8}),
    "list_rollouts": Example({"items": [GROUP], "next_cursor": None}),
    "get_rollouts": Example({**GROUP, "rollouts": [ROLLOUT]}),
    "list_checkpoints": Example(
        {
            "items": [
                {
                    "id": 8,
                    "step": 60,
                    "attempt": 1,
                    "stage": "rl",
                    "size_bytes": 12_600_000,
                    "is_best": True,
                    "pass_at_1": 0.65,
                    "created_at": "2026-12-01T09:00:30Z",
                    "removed_at": None,
                }
            ]
        }
    ),
    "list_evaluations": Example(
        {
            "items": [
                {
                    "step": 60,
                    "attempt": 1,
                    "stage": "rl",
                    "label": "interval",
                    "title": "after 60 steps",
                    "recipe": "r1",
                    "seconds": 2.5,
                    "at": "2026-12-01T09:00:30Z",
                    "superseded": False,
                    "results": [{"domain": "all", "pass_at_1": ESTIMATE, "reward": ESTIMATE}],
                }
            ]
        }
    ),
    "list_exports": Example({"items": [READY_EXPORT]}),
    "make_export": Example(EXPORT, {"checkpoint": "best", "dtype": "float32"}),
    "get_export": Example(READY_EXPORT),
    "download_export": Example("a tar file"),
    "cancel_export": Example({**EXPORT, "state": "cancelled"}),
    "delete_export": Example(),
    "list_datasets": Example({"items": [DATASET], "next_cursor": None}),
    "get_dataset": Example(DATASET),
    "list_records": Example(
        {
            "version": VERSION,
            "items": [
                {
                    "index": 0,
                    "record_id": "9f2c",
                    "split": "train",
                    "payload": {
                        "messages": [{"role": "user", "content": "2 + 2"}],
                        "answer": "4",
                    },
                }
            ],
            "next_cursor": None,
        }
    ),
    "upload_file": Example(IMPORT),
    "get_import": Example({**IMPORT, "state": "done", "dataset": 3, "version": VERSION}),
    "start_import": Example(
        IMPORT, {"name": "school sums", "prompt": "question", "answer": "result"}
    ),
}
