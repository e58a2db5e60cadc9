"""What can go wrong, with the exit code of each kind and words for people."""

from __future__ import annotations

from temper_client.models import FieldProblem

EXIT_CODES = {
    0: "done; a run that was watched succeeded, an import is done, an export is here",
    1: "a run that was watched failed or was stopped, an import was rejected, an export failed",
    2: "the command was written wrongly, or a file cannot be read or written",
    3: "the server refused: a field is wrong, the state does not allow it, no such thing",
    4: "the server cannot be reached",
    5: "not signed in: the token is missing, unknown, expired or lacks a scope",
    130: "interrupted; a run that was watched goes on, so does an export",
}


class TemperError(Exception):
    """Anything that the client reports; its text is for people."""

    exit_code = 2


class UnreachableError(TemperError):
    """The server does not answer, or something else answers in its place."""

    exit_code = 4


class RefusedError(TemperError):
    """The server said no."""

    exit_code = 3

    def __init__(
        self, status: int, detail: str, errors: list[FieldProblem], *, may_pass: bool = False
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = errors
        """What is wrong at which field."""
        self.may_pass = may_pass
        """Whether the same request may succeed a little later."""
        if status == 401 or (status == 403 and "scope" in detail):
            self.exit_code = 5


class EndedBadlyError(TemperError):
    """A run, an import or an export came to an end that is not the good one."""

    exit_code = 1
