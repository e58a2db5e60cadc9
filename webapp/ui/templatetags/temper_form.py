"""Filters for the schema form's templates: `{% load temper_form %}`."""

from __future__ import annotations

import math

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from webapp.ui.schema_form.nodes import GroupNode, ListNode, Node, VariantNode

register = template.Library()


@register.filter
def child(group: GroupNode, name: str) -> Node | None:
    """The node of a model's field."""
    return next((n for n in group.children if n.path.rpartition(".")[2] == name), None)


@register.filter
def ticked(text: str) -> SafeString:
    """A docstring as HTML: what stands between backticks becomes code, all else is escaped."""
    parts = str(text).split("`")
    return mark_safe(
        "".join(
            f"<code>{escape(part)}</code>" if index % 2 else escape(part)
            for index, part in enumerate(parts)
        )
    )


@register.filter
def weight_share(item: GroupNode, siblings: ListNode) -> str:
    """The share of an item's weight in the weights of its list, in sizes: `70 %`."""
    total = sum(abs(_weight(sibling)) for sibling in siblings.items)
    own = abs(_weight(item))
    return f"{100 * own / total:.0f} %" if total and math.isfinite(total) else "–"


@register.filter
def inner(variant: VariantNode | None) -> GroupNode | None:
    """The chosen member of a union."""
    return variant.group if isinstance(variant, VariantNode) else None


def _weight(item: GroupNode) -> float:
    """An item's weight as a number; 0 when it is none."""
    named = item.field("weight")
    try:
        number = float(named.text) if named is not None else 0.0
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0
