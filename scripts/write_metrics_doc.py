"""Write docs/metrics.md from the metric catalogue; run it after a change there."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from training_core.contract.metrics import METRICS, MetricDef  # noqa: E402 - the path is set above

HEAD = ["| name | unit | better | meaning |", "|---|---|---|---|"]


def row(metric: MetricDef) -> str:
    """One line of the table."""
    return f"| `{metric.name}` | {metric.unit or '—'} | {metric.direction} | {metric.meaning} |"


def main() -> None:
    """Write the page."""
    lines = [
        "# Metrics",
        "",
        "Made from `training_core/contract/metrics.py`. `{name}` is a reward's name, `{domain}` a",
        "domain's. These repeat exactly on the same processor:",
        "",
        *HEAD,
        *(row(metric) for metric in METRICS if not metric.wall_clock),
        "",
        "These depend on the machine's speed (`wall_clock`):",
        "",
        *HEAD,
        *(row(metric) for metric in METRICS if metric.wall_clock),
        "",
    ]
    (ROOT / "docs" / "metrics.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
