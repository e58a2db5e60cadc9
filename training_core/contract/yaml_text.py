"""YAML for RunSpecs, both ways, without YAML 1.1's surprises.

Called by the launch page, the API and the command line. `1e-5` is a number, `no` and `on` are
words, a doubled key is an error and no tag can build an object.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml

from training_core.contract.spec import RunSpec

MAX_YAML_CHARS = 400_000
"""PyYAML takes seconds for these; a spec of a thousand domains, written out, has 325,000."""
MAX_NESTING = 64
"""Mappings and lists inside each other; the deepest spec that is valid has 27."""
MAX_KEY_CHARS = 200
"""Far beyond any field or setting; paths are made of keys, again and again."""
MAX_DIGITS = 1_000
PLAIN = tuple(
    f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str", "seq", "map")
)
"""What a value may be; a tag of anything else, such as `!!timestamp`, is an error."""


class YamlError(ValueError):
    """The text is not YAML, or not a mapping; the message names the line."""


class StrictLoader(yaml.SafeLoader):
    """SafeLoader with YAML 1.2 scalars and without doubled keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    yaml_constructors = {
        tag: make
        for tag, make in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag in PLAIN
    }

    depth = 0
    """Collections that are being composed."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse aliases, which can explode, and a depth that would exhaust the stack."""
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # stubs
        if self.check_event(yaml.events.AliasEvent):
            raise YamlError(f"line {mark.line + 1}: aliases are not allowed")
        if self.depth > MAX_NESTING:
            raise YamlError(
                f"line {mark.line + 1}: the text is nested too deeply, more than {MAX_NESTING} deep"
            )
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Refuse a text under a tag that it does not fit, `!!int x`: PyYAML trips over it."""
        try:
            return super().construct_object(node, deep=deep)
        except YamlError:
            raise
        except (ValueError, LookupError) as error:
            kind = node.tag.rpartition(":")[2]
            raise YamlError(
                f"line {node.start_mark.line + 1}: the text is not what its tag !!{kind} says"
            ) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key that stands twice, or is no name."""
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(key_node.value)
            line = key_node.start_mark.line + 1
            if len(key) > MAX_KEY_CHARS:
                raise YamlError(f"line {line}: the key is longer than {MAX_KEY_CHARS} characters")
            if key in seen:
                raise YamlError(f"line {line}: the key {key!r} stands twice")
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:bool", r"^(?:true|True|false|False)$", "tTfF"),
    ("tag:yaml.org,2002:null", r"^(?:~|null|Null|)$", ("~", "n", "N", "")),
    ("tag:yaml.org,2002:int", r"^[-+]?[0-9]+$", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?$|^[-+]?\.(?:inf|nan)$",
        "-+.0123456789",
    ),
):
    StrictLoader.add_implicit_resolver(_tag, re.compile(_pattern), list(_first))


def _construct_int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    """Decimal only: YAML 1.1 would read 010 as 8."""
    digits = str(loader.construct_scalar(node))
    if len(digits) > MAX_DIGITS:
        line = node.start_mark.line + 1
        raise YamlError(f"line {line}: the number has more than {MAX_DIGITS:,} digits")
    return int(digits)


StrictLoader.add_constructor("tag:yaml.org,2002:int", _construct_int)


class StrictDumper(yaml.SafeDumper):
    """SafeDumper that also quotes what only StrictLoader reads as a number: `1e5`, `08`."""

    yaml_implicit_resolvers = {
        first: yaml.SafeDumper.yaml_implicit_resolvers.get(first, [])
        + StrictLoader.yaml_implicit_resolvers.get(first, [])
        for first in {
            *yaml.SafeDumper.yaml_implicit_resolvers,
            *StrictLoader.yaml_implicit_resolvers,
        }
    }

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        """Write a value as often as it occurs: the loader refuses aliases."""
        return True


_OTHER_LINE_ENDS = re.compile("[\\r\x85\u2028\u2029]")
"""What YAML folds into spaces or newlines unless it is escaped in double quotes."""


def _represent_text(dumper: StrictDumper, text: str) -> yaml.ScalarNode:
    """Plain where that is safe; in double quotes, escaped, where a line end would be changed."""
    style = '"' if _OTHER_LINE_ENDS.search(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


StrictDumper.add_representer(str, _represent_text)


class ParsedYaml(NamedTuple):
    """A text that was read once: what it says, and where each part of it stands."""

    document: dict[str, Any]
    node: yaml.Node
    """The mapping as PyYAML composed it, with line marks."""


def parse_yaml(text: str) -> dict[str, Any]:
    """Read a YAML mapping. Raises YamlError with the line."""
    return parse_yaml_with_marks(text).document


def parse_yaml_with_marks(text: str) -> ParsedYaml:
    """Read a YAML mapping, and keep where its parts stand. Raises YamlError with the line."""
    if len(text) > MAX_YAML_CHARS:
        raise YamlError(f"the text is longer than {MAX_YAML_CHARS:,} characters")
    try:
        loader = StrictLoader(text)
        node = loader.get_single_node()
        document = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise YamlError(f"{where}{error.problem or error.context or 'not YAML'}") from error
    except yaml.YAMLError as error:
        raise YamlError(f"not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise YamlError("the text is nested too deeply") from error
    if node is None or not isinstance(document, dict):
        raise YamlError("expected a mapping of fields, such as `name: my run`")
    return ParsedYaml(document, node)


def dump_yaml(document: dict[str, Any], *, flow: bool = False) -> str:
    """A mapping as YAML that `parse_yaml` gives back unchanged; `flow` writes it on one line."""
    return yaml.dump(
        document,
        Dumper=StrictDumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=flow,
        width=1_000_000 if flow else 100,
    )


def spec_to_yaml(spec: RunSpec) -> str:
    """The whole spec as YAML, in the order of its fields."""
    return dump_yaml(spec.model_dump(mode="json"))
