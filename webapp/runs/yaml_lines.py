"""Which line of a YAML text each field stands in, so that errors can point at it.

Called by `webapp.runs.forms` with what `parse_yaml_with_marks` has read, so that a text is never
parsed twice.
"""

from __future__ import annotations

import yaml


def find_line(node: yaml.Node, path: str) -> int | None:
    """The line, from 1, of a dotted path or of the nearest place above it.

    Looked up for each error: a table of all paths of a hostile text could fill the memory.
    """
    line = None
    while path:
        step = _step(node, path)
        if step is None:
            break
        part, mark, node = step
        line = mark.line + 1
        path = path[len(part) + 1 :]
    return line


def _step(node: yaml.Node, path: str) -> tuple[str, yaml.Mark, yaml.Node] | None:
    """(key or index, where it stands, what it holds) of the first part of a path."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = str(key.value)
            if path == name or path.startswith(f"{name}."):
                return name, key.start_mark, value
    elif isinstance(node, yaml.SequenceNode):
        first = path.partition(".")[0]
        if first.isdecimal() and len(first) < 10 and int(first) < len(node.value):
            item = node.value[int(first)]
            return first, item.start_mark, item
    return None
