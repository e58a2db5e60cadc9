"""Models of the hub: asked about, then fetched whole into the cache, then read from disk.

Called by `models.loading`. The list of a model's files and its config answer most questions before
a byte of weights has come: a model that cannot be trained is refused within seconds. The token is
HF_TOKEN's, or that of `hf auth login`.
"""

from __future__ import annotations

import errno
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from huggingface_hub import HfApi, get_session, get_token, hf_hub_download, snapshot_download
from huggingface_hub.constants import ENDPOINT
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)

from training_core.failures import BadModel

PATIENCE_S = 5
WEIGHTS = "model*.safetensors"
WANTED = (WEIGHTS, "*.json", "*.txt", "*.model", "*.jinja", "README.md", "LICENSE*")
UNWANTED = ("*/*",)
"""Folders hold the same weights in other formats."""
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
SPARE_BYTES = 200_000_000
MORE_DISK = "Free disk space there, or point HF_HUB_CACHE to a larger disk."
WATCH_EVERY_S = 0.5

FetchProgress = Callable[[int, int], None]
"""Told (bytes here, bytes of the whole), from a thread too."""
CheckConfig = Callable[[Path], None]
"""Refuses a folder with a config that cannot be trained, before its weights are fetched."""


def fetch_model(ref: str, cache: Path, *, check_config: CheckConfig, told: FetchProgress) -> Path:
    """The folder of a hub's model, fetched where it is not here yet. Raises BadModel.

    Without a network, or where the hub gives nothing any more, it is the folder as it was fetched.
    """
    if not is_hub_in_reach():
        return _find_here(ref, cache)
    try:
        return _fetch(ref, cache, check_config, told)
    except BadModel:
        raise
    except Exception as error:  # the client's libraries have error classes of their own
        try:
            return _find_here(ref, cache)
        except BadModel:
            raise explain_refusal(ref, error) from error


def is_hub_in_reach() -> bool:
    """Ask once; without network the hub's client would try each file for half a minute."""
    try:
        get_session().head(ENDPOINT, timeout=PATIENCE_S)
    except Exception:  # whatever keeps the answer away, files on this machine may still do
        return False
    return True


def _fetch(ref: str, cache: Path, check_config: CheckConfig, told: FetchProgress) -> Path:
    """Ask, look at the config, make sure of the disk, fetch."""
    info = HfApi().model_info(ref, files_metadata=True, timeout=4 * PATIENCE_S)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
    _check_listing(ref, list(sizes))
    first = hf_hub_download(ref, "config.json", cache_dir=cache)  # says whether it is gated
    check_config(Path(first).parent)
    wanted = {name: size for name, size in sizes.items() if _is_wanted(name)}
    home = cache / f"models--{ref.replace('/', '--')}" / "blobs"
    total = sum(wanted.values())
    _check_room(ref, cache, total - _bytes_in(home))
    with _watching(home, total, told):
        folder = snapshot_download(
            ref, cache_dir=cache, allow_patterns=list(WANTED), ignore_patterns=list(UNWANTED)
        )
    return Path(folder)


def _find_here(ref: str, cache: Path) -> Path:
    """The folder as it was fetched before. Raises BadModel."""
    try:
        folder = snapshot_download(
            ref,
            cache_dir=cache,
            local_files_only=True,
            allow_patterns=list(WANTED),
            ignore_patterns=list(UNWANTED),
        )
    except (LocalEntryNotFoundError, HFValidationError) as error:
        raise explain_refusal(ref, error) from error
    return Path(folder)


def _check_listing(ref: str, names: Sequence[str]) -> None:
    """Refuse what holds no model, or none that is read safely."""
    if "config.json" not in names:
        raise BadModel(
            f"{ref} on the hub holds no config.json, so it is no model in transformers' format.",
            "Choose the model's own page; files for other programs (GGUF, ONNX) are not trained.",
        )
    if any(fnmatch(name, WEIGHTS) for name in names if "/" not in name):
        return
    if any(fnmatch(name, kind) for name in names for kind in PICKLES):
        raise BadModel(
            f"{ref} keeps its weights in PyTorch pickle files alone, which cannot be read safely.",
            "Convert the weights to safetensors and give their folder, or choose another model.",
        )
    raise BadModel(
        f"{ref} on the hub holds no weights in safetensors.",
        "Choose another model, or convert the weights and give their folder.",
    )


def _check_room(ref: str, cache: Path, needed_bytes: int) -> None:
    """Refuse before fetching what cannot fit."""
    home = next(each for each in (cache, *cache.parents) if each.exists())
    free = shutil.disk_usage(home).free
    if free < needed_bytes + SPARE_BYTES:
        raise BadModel(
            f"{ref} needs {needed_bytes / 1e9:.1f} GB of disk to be fetched, and"
            f" {free / 1e9:.1f} GB are free at {home}.",
            MORE_DISK,
        )


def _is_wanted(name: str) -> bool:
    return "/" not in name and any(fnmatch(name, pattern) for pattern in WANTED)


def _bytes_in(folder: Path) -> int:
    """Bytes that are here of a model, half files included."""
    try:
        return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    except OSError:
        return 0


@contextmanager
def _watching(folder: Path, total: int, told: FetchProgress) -> Iterator[None]:
    """Tell how much is here while it is fetched; the client's own bars are for terminals."""
    ended = threading.Event()

    def tell() -> None:
        told(min(_bytes_in(folder), total), total)

    def watch() -> None:
        while not ended.wait(WATCH_EVERY_S):
            tell()

    tell()  # a page shows the size at once
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def explain_refusal(ref: str, error: Exception) -> BadModel:
    """What the hub said, as a sentence and an advice."""
    has_token = bool(get_token())
    if isinstance(error, GatedRepoError):
        return _explain_gate(ref, has_token=has_token)
    if isinstance(error, RepositoryNotFoundError):
        more = ", or not open to the account of HF_TOKEN" if has_token else ", or it is private"
        return BadModel(
            f"There is no model {ref} on the hub{more}.",
            "Check the spelling; for a private model set HF_TOKEN for the worker.",
        )
    if isinstance(error, LocalEntryNotFoundError):
        return BadModel(
            f"{ref} is not on this machine and the hub cannot be reached.",
            "Connect the worker to the network once, or give the path of a downloaded model.",
        )
    if isinstance(error, HFValidationError):
        return BadModel(
            f"{ref} is neither a built-in model, nor a directory, nor a hub id.",
            "Use smollm2-135m-instruct, tiny, a hub id such as org/name, or a path.",
        )
    if isinstance(error, HfHubHTTPError):
        return _explain_status(ref, error.response.status_code, has_token=has_token)
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return BadModel(f"The disk became full while {ref} was fetched.", MORE_DISK)
    first_line = next(iter(str(error).strip().splitlines()), repr(error))
    return BadModel(
        f"{ref} could not be fetched from the hub: {first_line}",
        "Launch the run again in a while, or give the path of a downloaded model.",
    )


def _explain_status(ref: str, status: int, *, has_token: bool) -> BadModel:
    """An answer of the hub that names no reason of its own."""
    if status == 401 and has_token:
        return BadModel(
            f"The hub does not accept the token in HF_TOKEN, so {ref} cannot be fetched.",
            "Make a new token on the hub and set HF_TOKEN for the worker, or unset it for models"
            " that are public.",
        )
    if status == 403:
        return BadModel(
            f"The token in HF_TOKEN has no right to read {ref}.",
            "Give the token the right to read repositories, on the hub's page of tokens.",
        )
    return BadModel(
        f"The hub answered with status {status} when it was asked for {ref}.",
        "Launch the run again in a while, or give the path of a downloaded model.",
    )


def _explain_gate(ref: str, *, has_token: bool) -> BadModel:
    """A model for which each person must ask."""
    if has_token:
        return BadModel(
            f"{ref} is gated, and the account of HF_TOKEN has no access to it.",
            "Ask for access on the model's page with that account, or choose another model.",
        )
    return BadModel(
        f"{ref} is gated: its owner grants access person by person, and there is no HF_TOKEN.",
        "Ask for access on the model's page, set HF_TOKEN for the worker, or choose another model.",
    )
