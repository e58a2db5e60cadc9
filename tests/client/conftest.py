"""Makes the client importable from the checkout."""

from __future__ import annotations

import sys

from tests.architecture.sources import ROOT

sys.path.insert(0, str(ROOT / "scripts" / "client"))
