"""A process that plays a trainer badly or well: the fake at the process border.

`python -m tests.workers.scripted SCENE RUN_DIR --attempt K --token T`, as the supervisor starts it.
Each scene is a function; it writes real events into the real run directory.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.webapp.runs_control.story import Story
from training_core.contract.events import ControlApplied
from training_core.contract.rundir import RunDir


def succeed(story: Story) -> int:
    story.started()
    story.stage("rl", 0, 0)
    for step in (1, 2, 3):
        story.phase(step, done=1)
        story.rollouts(step)
        story.metrics(step)
    story.checkpoint(3)
    story.evaluation(3)
    story.finished(3)
    return 0


def crash(story: Story) -> int:
    """Raises after a line on stdout, as an uncaught exception would."""
    story.started()
    print("about to divide", flush=True)
    raise ZeroDivisionError("step 1 has no tokens")


def vanish(story: Story) -> int:
    story.started()
    return 0


def die_by_signal(story: Story) -> int:
    story.started()
    os.kill(os.getpid(), signal.SIGSEGV)
    return 0


def out_of_memory(story: Story) -> int:
    story.started()
    story.finished(0, outcome="failed", cause="out_of_memory", message="Too big.", retryable=True)
    return 1


def loading(story: Story) -> int:
    """Not yet ready to hear a signal."""
    note_pids(story, os.getpid())
    time.sleep(600)
    return 0


def stubborn(story: Story) -> int:
    """Deaf to wishes and to SIGTERM, with a child that is deaf too."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    story.started()
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    hiding = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
    )
    note_pids(story, child.pid, hiding.pid)
    time.sleep(600)
    return 0


def orphans(story: Story) -> int:
    """Ends well and leaves a child and a hidden child behind."""
    for session in (False, True):
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=session
        )
        note_pids(story, child.pid)
    return succeed(story)


def talk_and_hang(story: Story) -> int:
    """Says that it is done and does not exit."""
    succeed(story)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
    return 0


def half_line(story: Story) -> int:
    """A line that is written in two halves, with a pause between them."""
    story.started()
    story.metrics(1)
    whole = story.path.read_bytes()
    middle = len(whole) - 25
    story.path.write_bytes(whole[:middle])
    time.sleep(0.6)
    with story.path.open("ab") as file:
        file.write(whole[middle:])
    story.finished(1)
    return 0


def torn(story: Story) -> int:
    """Killed in the middle of a line."""
    story.started()
    story.metrics(1)
    story.checkpoint(1)
    with story.path.open("ab") as file:
        file.write(b'{"kind": "metrics", "seq": 4, "t"')
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def obey(story: Story) -> int:
    """Steps until it is told to end; then saves, acknowledges and says so."""
    asked: list[str] = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append("shutdown"))
    story.started()
    step = 0
    while not asked:
        step += 1
        story.metrics(step)
        time.sleep(0.05)
        for command in story.run_dir.read_control():
            if command.attempt == story.attempt and command.command in {"stop", "pause"}:
                story.add(
                    ControlApplied,
                    step=step,
                    control_id=command.id,
                    command=command.command,
                    result="saved",
                )
                asked.append(command.command)
    story.checkpoint(step)
    outcome = {"stop": "stopped", "pause": "paused", "shutdown": "shutdown"}[asked[0]]
    story.finished(step, outcome=outcome, cause="user", message=f"It was {outcome}.")
    return 0


def note_pids(story: Story, *pids: int) -> None:
    """Leave process ids for the test to look at."""
    with (story.run_dir.root / "pids").open("a") as file:
        file.writelines(f"{pid}\n" for pid in pids)


def leave_with_supervisor() -> None:
    while os.read(0, 4096):
        pass
    os._exit(75)


SCENES = {
    each.__name__: each
    for each in (
        succeed,
        crash,
        vanish,
        die_by_signal,
        out_of_memory,
        loading,
        stubborn,
        orphans,
        talk_and_hang,
        half_line,
        torn,
        obey,
    )
}
BY_NAME = "by-name"
"""The run's name is the scene: for workers of their own, which run many."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("scene", choices=[*SCENES, BY_NAME])
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--attempt", type=int, required=True)
    parser.add_argument("--token", type=int, required=True)
    arguments = parser.parse_args()
    threading.Thread(target=leave_with_supervisor, daemon=True).start()
    run_dir = RunDir(arguments.run_dir)
    scene = run_dir.read_spec().name if arguments.scene == BY_NAME else arguments.scene
    return SCENES[scene](Story(run_dir, arguments.attempt))


if __name__ == "__main__":
    sys.exit(main())
