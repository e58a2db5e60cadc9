"""What programs say of a run, as people read it: `{% load run_words %}`, `{{ run.message|told }}`.

Rows hold these sentences in English, since the API, the log and other programs read them too. Here
stand those that people meet often; a page in another language shows their translation, and any
other sentence as it was said.
"""

from __future__ import annotations

import re
from functools import cache

from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_noop as _

SENTENCES = (
    # persons
    _("Launched by %(who)s."),
    _("%(who)s asked to stop."),
    _("Stopped by %(who)s."),
    _("%(who)s asked for a pause."),
    _("Paused by %(who)s."),
    _("Resumed by %(who)s."),
    # workers and the reaper
    _("The worker %(worker)s has not been heard of since %(moment)s."),
    _("Its worker fell silent and did not come back."),
    _("The worker was silent for a while and is back; nothing was lost."),
    _("The stored spec cannot be read: %(what)s"),
    _("Launch a copy of the run; the form shows what has changed."),
    _("The trainer was killed, and the system's out-of-memory killer was at work then."),
    _(
        "Lower resources.micro_batch_tokens, group_size or max_new_tokens, or take a machine "
        "with more memory."
    ),
    _("The trainer was ended by %(signal)s."),
    _("If it happens again, look at the console for what it did last."),
    _("The trainer ended without saying how."),
    _("Look at the console."),
    _("The trainer ended with code %(code)s."),
    _("The last lines of the console say where it happened."),
    _("The trainer could not be started: %(reason)s."),
    _("Look at the worker's log; the disk may be full or the Python environment broken."),
    _(
        "The trainer was asked to end before it was ready to save; what it did after its last "
        "checkpoint is lost."
    ),
    _(
        "The trainer did not end in time after it was asked to and was killed; what it did after "
        "its last checkpoint is lost."
    ),
    # trainers
    _("All stages are finished."),
    _("The limit of %(n)s minutes of training is reached."),
    _("The limit of %(n)s sampled tokens is reached."),
    _("The run was stopped: saved at step %(step)s."),
    _("The run was paused: saved at step %(step)s."),
    _("The run was shut down with its worker: saved at step %(step)s."),
    _("The run was shut down with its worker: nothing to save at step 0."),
    _("The run was stopped: nothing to save at step 0."),
    _("The run was paused: nothing to save at step 0."),
    _("The weights after step %(step)s are not finite numbers and were not saved."),
    _("The last %(n)s updates had a loss or gradient that is not a finite number."),
    _("Lower the learning rate, or go back to an earlier checkpoint."),
    _("Training is done, but the disk has no room for the trained weights."),
    _("Free disk space, then resume the run: it goes on from its last checkpoint."),
    _("Free disk space, then resume the run."),
    _("The run asks for a GPU, but this worker has none."),
    _("Set resources.device to auto, or start a worker on a machine with a GPU."),
    _("See the run's log for the traceback; the run can be resumed from its last checkpoint."),
    # notices
    _(
        "Memory ran out, so micro-batches hold %(n)s tokens at most from here on. Results stay the "
        "same; lower resources.micro_batch_tokens to begin there."
    ),
    _(
        "The loss or its gradient was not a finite number, so the weights were left as they are. "
        "After %(n)s such updates in a row the run ends. If it comes again, lower the learning "
        "rate."
    ),
    _(
        "No checkpoint could be written: %(reason)s Training goes on and saving is tried again "
        "after each step. Free disk space, or remove old runs."
    ),
)
"""Of whole lines."""
ENDS = (
    _("Given up after %(n)s attempts without a new checkpoint."),
    _("It goes on from step %(step)s."),
    _("It begins again."),
)
"""What may follow on the same line."""
LAST_WORDS = _("Its last lines:")
ENGLISH = "en"
_PLACE = re.compile(r"%\((\w+)\)s")


def told(message: str) -> str:
    """A stored sentence in the language of the page, as far as it is a known one."""
    if (get_language() or ENGLISH).startswith(ENGLISH):
        return message
    line, mark, rest = message.partition("\n")
    if rest.startswith(LAST_WORDS):
        rest = gettext(LAST_WORDS) + rest.removeprefix(LAST_WORDS)
    return f"{_told_line(line)}{mark}{rest}"


def _told_line(line: str) -> str:
    """One line: a known sentence, and what may follow on it."""
    for end in ENDS:
        found = _form(f"%(head)s {end}").fullmatch(line)
        if found:
            return f"{_told_line(found['head'])} {gettext(end) % found.groupdict()}"
    for sentence in SENTENCES:
        found = _form(sentence).fullmatch(line)
        if found:
            return gettext(sentence) % found.groupdict()
    return line


@cache
def _form(sentence: str) -> re.Pattern[str]:
    """What a sentence looks like with its values in it."""
    parts = _PLACE.split(sentence)
    forms = (f"(?P<{part}>.+?)" if i % 2 else re.escape(part) for i, part in enumerate(parts))
    return re.compile("".join(forms))
