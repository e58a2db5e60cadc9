from __future__ import annotations

import pytest

from training_core.domains.templates import chat_prompt, fill


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{question}", "Q{answer}"),
        ("<answer>{answer}</answer>", "<answer>A{question}</answer>"),
        ("{question} {answer} {other} {{}} {", "Q{answer} A{question} {other} {{}} {"),
        ('{"q": "{question}"}', '{"q": "Q{answer}"}'),
        ("{question}{question}", "Q{answer}Q{answer}"),
        ("%s {0} \\1", "%s {0} \\1"),
        ("", ""),
    ],
)
def test_only_known_names_are_filled_and_only_once(template: str, filled: str) -> None:
    assert fill(template, question="Q{answer}", answer="A{question}") == filled


def test_a_name_that_is_not_given_stays() -> None:
    assert fill("{question} {answer}", question="Q") == "Q {answer}"


def test_the_system_turn_is_left_out_when_empty() -> None:
    assert [(m.role, m.content) for m in chat_prompt("", "hi")] == [("user", "hi")]
    assert [m.role for m in chat_prompt("Be brief.", "hi")] == ["system", "user"]
