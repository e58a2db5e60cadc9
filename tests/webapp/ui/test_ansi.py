"""Terminal text as HTML: colours, overwritten lines, and nothing that a page would run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from webapp.ui.ansi import ansi_to_html, strip_ansi


def test_colours_become_classes_and_close() -> None:
    html = ansi_to_html("\x1b[1;31mred\x1b[0m plain \x1b[32mgreen")
    assert html == (
        '<span class="ansi-bold ansi-red">red</span> plain <span class="ansi-green">green</span>'
    )


def test_a_progress_bar_shows_its_last_state() -> None:
    assert ansi_to_html("10 %\r50 %\r100 %\ndone\r\n") == "100 %\ndone\n"


def test_markup_and_controls_are_text() -> None:
    html = ansi_to_html("<script>x</script>\x1b]0;title\x07\x1b[2J\x00\x08")
    assert html == "&lt;script&gt;x&lt;/script&gt;␀␈"


def test_links_of_terminals_are_dropped() -> None:
    assert ansi_to_html("\x1b]8;;javascript:alert(1)\x1b\\x\x1b]8;;\x1b\\") == "x"


@given(st.text(st.characters(max_codepoint=300), max_size=60))
def test_no_input_makes_markup_of_its_own(text: str) -> None:
    html = ansi_to_html(text)
    plain = html.replace("</span>", "")
    for classes in plain.split('<span class="')[1:]:
        assert all(name.startswith("ansi-") for name in classes.split('">')[0].split())
    assert "<" not in "".join(part.split('">', 1)[-1] for part in plain.split("<span"))


def test_search_sees_the_words_alone() -> None:
    assert strip_ansi("\x1b[31mre\x1b[0mward") == "reward"
