"""The command `temper`, installed on its own, against a live server, worker and trainer."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.architecture.sources import ROOT
from tests.browser.session import free_port, start_server, wait_until_up
from tests.engines import Engines
from tests.workers.conftest import StartCelery, wait_for
from training_core.contract.presets import TINY_COPY
from training_core.contract.yaml_text import spec_to_yaml
from training_core.models.loading import load_directory
from webapp.accounts.models import User
from webapp.api.scopes import Scope
from webapp.api.services import create_token
from webapp.datasets.models import DatasetVersion
from webapp.registry.models import ModelExport
from webapp.runs.models import Run

NEEDED = (
    *("httpx2", "httpcore2", "h11", "anyio", "idna", "truststore"),
    *("pydantic", "pydantic-core", "annotated-types", "typing-inspection", "typing-extensions"),
    *("rich", "markdown-it-py", "mdurl", "pygments"),
)
"""Distributions that the client may import: its three dependencies and theirs."""
Temper = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`temper` in a virtual environment that holds the client and nothing else of Temper."""
    folder = tmp_path_factory.mktemp("client")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    libraries = Path(sysconfig.get_path("purelib"))
    target = next((folder / "venv" / "lib").glob("python3*")) / "site-packages"
    for name in NEEDED:
        for part in {file.parts[0] for file in distribution(name).files or ()}:
            if part not in {"..", "__pycache__"}:
                (target / part).symlink_to(libraries / part)
    source = folder / "source"
    subprocess.run(["cp", "-r", ROOT / "scripts" / "client", source], check=True)
    options = ["--quiet", "--no-deps", "--no-index"]
    pip = [sys.executable, "-m", "pip"]
    build = ["wheel", "--no-build-isolation", *options, f"--wheel-dir={folder}", source]
    subprocess.run([*pip, *build], check=True)
    [wheel] = folder.glob("*.whl")
    subprocess.run([*pip, f"--python={python}", "install", *options, wheel], check=True)
    return folder / "venv" / "bin" / "temper"


@pytest.fixture
def server(engines: Engines, transactional_db: None) -> Iterator[Server]:
    server = Server(engines)
    server.start()
    yield server
    server.stop()


class Server:
    """The web server of these tests, which can be restarted."""

    def __init__(self, engines: Engines) -> None:
        self.engines, self.port = engines, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Come up on the same port."""
        log = self.engines.home / "command-server.log"
        self.process = start_server(self.engines, self.port, log)
        wait_until_up(self.url, self.process, log)

    def stop(self) -> None:
        """Go away at once, as after a crash."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def environment(server: Server, alice: User, tmp_path: Path) -> dict[str, str]:
    scopes = (Scope.READ, Scope.LAUNCH, Scope.CONTROL, Scope.DATA)
    _, secret = create_token(alice, "command", scopes)
    (tmp_path / "token").write_text(f"{secret}\n")
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "XDG_CONFIG_HOME": str(tmp_path / "config"), "COLUMNS": "160"}


@pytest.fixture
def temper(command: Path, environment: dict[str, str], server: Server, tmp_path: Path) -> Temper:
    """Runs the command to its end, signed in."""

    def run(*arguments: str, code: int = 0, given: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [command, *arguments],
            env=environment,
            cwd=tmp_path,
            input=given,
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done

    token = (tmp_path / "token").read_text()
    said = run("login", server.url, "--token-stdin", given=token).stdout
    assert "Signed in as alice" in said
    return run


def quick_spec(tmp_path: Path, steps: int = 4) -> Path:
    """A file with a run of a few quick steps."""
    warm_up, rl = TINY_COPY.spec.stages
    spec = TINY_COPY.spec.model_copy(
        update={
            "name": "from the command",
            "stages": (
                warm_up.model_copy(update={"steps": 2, "batch_size": 2}),
                rl.model_copy(update={"steps": steps, "prompts_per_step": 2, "group_size": 2}),
            ),
            "resources": TINY_COPY.spec.resources.model_copy(update={"threads": 1}),
        }
    )
    path = tmp_path / "spec.yaml"
    path.write_text(spec_to_yaml(spec))
    return path


def test_launch_and_watch_to_the_end(
    temper: Temper, start_worker: StartCelery, tmp_path: Path
) -> None:
    start_worker("one", app="workers.celery_app")
    spec = quick_spec(tmp_path)
    assert "6 steps" in temper("launch", str(spec), "--check").stdout
    said = temper("launch", str(spec), "--watch").stdout
    run = Run.objects.get()
    assert f"#{run.number} from the command is queued" in said
    assert f"#{run.number} succeeded  step 6/6" in said
    assert run.state == "succeeded"
    assert "from the command" in temper("runs").stdout
    assert temper("spec", str(run.number)).stdout.startswith("spec_version: 1")
    rows = temper("curves", str(run.number), "reward").stdout.splitlines()
    assert rows[0] == "run,run_name,metric,step,time,value"
    assert len(rows) == 5
    temper("logs", str(run.number))
    assert "cannot be resumed" in temper("resume", f"#{run.number}", code=3).stderr
    longer = temper("restart", str(run.number)).stdout
    assert f"#{run.number + 1} from the command from step 6 is queued" in longer
    wait_for(lambda: Run.objects.get(number=run.number + 1).state == "succeeded", "its child")
    temper("delete", str(run.number + 1), "--name", "from the command from step 6")
    temper("archive", str(run.number))
    temper("delete", str(run.number), "--name", "wrong", code=3)
    temper("delete", str(run.number), "--name", "from the command")
    assert "No runs" in temper("runs").stdout


def test_an_exported_folder_computes_what_the_checkpoint_does(
    temper: Temper, start_worker: StartCelery, start_celery: StartCelery, tmp_path: Path
) -> None:
    """Trained, exported, fetched; then read by transformers alone, as its user will."""
    start_worker("one", app="workers.celery_app")
    options = ("--queues=cpu", "--pool=prefork", "--concurrency=1", "--hostname=cpu@test")
    start_celery("worker", *options, app="workers.celery_app")
    temper("launch", str(quick_spec(tmp_path)), "--watch")
    run = Run.objects.get()
    number = str(run.number)
    assert "no checkpoint 5" in temper("export", number, "--checkpoint", "5", code=3).stderr
    asked = temper("export", number, "--no-wait").stdout
    export = ModelExport.objects.get()
    assert f"step 6 of run #{number} in float32 is queued: {export.pk}" in asked
    said = temper("export", f"#{number}", "-o", "mine").stdout
    assert "every hash agrees" in said
    assert ModelExport.objects.get().pk == export.pk
    assert not (tmp_path / "mine.partial").exists()
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "mine")
    checkpoint = run.checkpoints.get(step=6)
    trained = load_directory(checkpoint.directory).model.eval()
    ids = torch.arange(6, 46)[None]
    with torch.no_grad():
        assert torch.equal(exported(ids).logits, trained(ids).logits)
    assert AutoTokenizer.from_pretrained(tmp_path / "mine").chat_template
    assert "is there already" in temper("export", number, "-o", "mine", code=2).stderr
    temper("export", number, "--dtype", "bfloat16")
    half = AutoModelForCausalLM.from_pretrained(tmp_path / f"temper-run-{number}-step-6-bfloat16")
    assert half.dtype == torch.bfloat16
    ModelExport.objects.filter(dtype="float32").delete()
    shutil.rmtree(checkpoint.directory)
    assert "no longer on disk" in temper("export", number, code=3).stderr


def test_errors_name_the_line_and_the_field(temper: Temper, tmp_path: Path) -> None:
    spec = quick_spec(tmp_path)
    text = spec.read_text().replace("group_size: 2", "group_size: 1")
    spec.write_text(text)
    line = next(n for n, words in enumerate(text.splitlines(), 1) if "group_size: 1" in words)
    said = temper("launch", str(spec), code=3).stderr
    assert said.startswith(f"{spec}:{line}: stages.1.group_size: Must be at least 2")
    spec.write_text("name: [")
    assert "ine 1" in temper("launch", str(spec), code=3).stderr
    assert "cannot be read" in temper("launch", "none.yaml", code=2).stderr
    assert "There is no run #99." in temper("watch", "99", code=3).stderr
    assert not Run.objects.exists()


def test_the_watch_survives_a_restart_of_the_server_and_ctrl_c_leaves_the_run(
    temper: Temper, command: Path, environment: dict[str, str], server: Server, tmp_path: Path
) -> None:
    temper("launch", str(quick_spec(tmp_path)), "--key", "once")
    temper("launch", str(quick_spec(tmp_path)), "--key", "once")
    run = Run.objects.get()
    watching = subprocess.Popen(
        # Whoever runs the tests in the background has them ignore Ctrl+C, and their children too.
        ["env", "--default-signal=INT", command, "watch", str(run.number)],
        env={**environment, "PYTHONUNBUFFERED": "1"},
        stdout=(tmp_path / "out").open("wb"),
        stderr=(tmp_path / "err").open("wb"),
    )
    try:
        out, err = tmp_path / "out", tmp_path / "err"
        wait_for(lambda: "queued" in out.read_text(), "the first line")
        server.stop()
        wait_for(lambda: "does not answer" in out.read_text(), "the word of the outage")
        server.start()
        Run.objects.update(stage="moved")
        wait_for(lambda: "moved" in out.read_text(), "a line after the restart")
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 130
        assert f"temper watch {run.number}" in err.read_text()
        run.refresh_from_db()
        assert run.state == "queued"
    finally:
        watching.kill()
        watching.wait()
    assert "stopped" in temper("stop", str(run.number)).stdout
    assert temper("watch", str(run.number), code=1).stderr.startswith(f"Run #{run.number} is stopp")


def test_a_file_is_imported_and_its_faults_are_listed(
    temper: Temper, start_celery: StartCelery, tmp_path: Path
) -> None:
    start_celery(
        "worker",
        "--queues=cpu",
        "--pool=threads",
        "--concurrency=1",
        app="workers.celery_app",
    )
    file = tmp_path / "sums.csv"
    file.write_text("question,answer\n" + "".join(f"{n} + 1,{n + 1}\n" for n in range(20)))
    said = temper("import", str(file), "--name", "sums").stdout
    version = DatasetVersion.objects.get()
    held_out = f"{version.held_out_count} of them held out"
    assert f"sums v1: 20 records, {held_out}; dataset_version: {version.pk}" in said
    assert "sums" in temper("datasets").stdout
    file.write_text("question,answer\n1 + 1,\n" + "2,3\n" * 5)
    done = temper("import", str(file), "--name", "sums", code=1)
    assert "row 2, answer: " in done.stdout
    assert "The import is rejected" in done.stderr
    assert "prompt: " in temper("import", str(file), "--prompt", "text", code=3).stderr
    file.write_text("a,b\n,2\n")
    assert "answer: " in temper("import", str(file), code=3).stderr


def test_bad_tokens_and_silent_servers_have_codes_of_their_own(
    command: Path, environment: dict[str, str], server: Server
) -> None:
    def run(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command, *arguments], env={**environment, **extra}, capture_output=True, text=True
        )

    assert run("me").returncode == 2
    wrong = run("me", TEMPER_URL=server.url, TEMPER_TOKEN="temper_x")
    assert (wrong.returncode, "no such token" in wrong.stderr) == (5, True)
    nobody = f"http://127.0.0.1:{free_port()}"
    silent = subprocess.run(
        [command, "login", nobody, "--token-stdin"],
        env=environment,
        input="temper_x\n",
        capture_output=True,
        text=True,
    )
    assert (silent.returncode, "does not answer" in silent.stderr) == (4, True)
