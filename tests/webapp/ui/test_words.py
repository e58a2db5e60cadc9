"""What people read in Chinese, whatever words the libraries bring along."""

from __future__ import annotations

import pytest
from babel.messages.catalog import Message
from django.core.exceptions import ValidationError
from django.utils.translation import gettext, ngettext, npgettext, override, pgettext

from scripts.messages import ROOT, catalogues, read, strings
from webapp.accounts.models import Project, Role
from webapp.accounts.passwords import LongEnough
from webapp.accounts.roles import ROLES_WITH, Right, who_may

TEXTS = [
    message
    for name in catalogues()
    if name.endswith("/django.po")
    for message in read(ROOT / name)
    if message.id and all(strings(message))
]


def shown(message: Message) -> str:
    """What a page says."""
    if isinstance(message.id, tuple | list):
        one, many = message.id[0], message.id[1]
        if message.context:
            return npgettext(message.context, one, many, 2)
        return ngettext(one, many, 2)
    return pgettext(message.context, message.id) if message.context else gettext(message.id)


def test_our_words_win_over_those_of_libraries() -> None:
    with override("zh-hans"):
        wrong = {m.id: shown(m) for m in TEXTS if shown(m) not in strings(m)}
    assert not wrong


def test_a_short_password_is_refused_in_the_readers_language() -> None:
    with pytest.raises(ValidationError, match="must contain at least 8 characters"):
        LongEnough().validate("abc")
    with override("zh-hans"), pytest.raises(ValidationError, match="8 个字符"):
        LongEnough().validate("abc")


@pytest.mark.django_db
@pytest.mark.parametrize("right", Right)
def test_who_may_is_said_in_both_languages(right: Right) -> None:
    project = Project.objects.main()
    english = who_may(right, project)
    assert english.split()[0] == ("an" if ROLES_WITH[right] == {Role.ADMIN} else "a")
    with override("zh-hans"):
        chinese = who_may(right, project)
        words = [role.word for role in Role if role in ROLES_WITH[right]]
    assert [word for word in words if word not in chinese] == []
    assert chinese.startswith("Main 的")
