"""Which line of a YAML text each field stands in, so that errors can point at it.

Called by `webapp.runs.forms` for texts that `parse_yaml` has read already.
"""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from training_core.contract.yaml_text import StrictLoader


def line_of_paths(text: str) -> dict[str, int]:
    """Dotted path to line, from 1, for every key and list item."""
    node = yaml.compose(text, Loader=StrictLoader)
    return dict(_walk(node, "")) if node is not None else {}


def _walk(node: yaml.Node, path: str) -> Iterator[tuple[str, int]]:
    """Paths and lines below a node."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            place = f"{path}.{key.value}" if path else str(key.value)
            yield place, key.start_mark.line + 1
            yield from _walk(value, place)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            place = f"{path}.{index}"
            yield place, item.start_mark.line + 1
            yield from _walk(item, place)
