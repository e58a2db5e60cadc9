"""`manage.py api-token USER`: make a token for a program, or revoke one by its prefix."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError
from psycopg_pool import PoolTimeout

from webapp.accounts.models import User
from webapp.api.access import tokens_of
from webapp.api.scopes import Scope
from webapp.api.services import DEFAULT_DAYS, MOST_DAYS, create_token, revoke_token


class Command(BaseCommand):
    """Thin: `webapp.api.services` makes the token."""

    help = "Print a new API token of a user, once; --list shows theirs, --revoke ends one."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Whose token, what it may do, how long."""
        parser.add_argument("username", help="whom the token acts for")
        parser.add_argument("--name", default="command line", help="what it is for")
        parser.add_argument(
            "--scope",
            action="append",
            choices=[scope.value for scope in Scope],
            help="what it may do; repeat it for more (default: read)",
        )
        parser.add_argument(
            "--days", type=int, default=DEFAULT_DAYS, help=f"lifetime, 1 to {MOST_DAYS} days"
        )
        parser.add_argument("--list", action="store_true", help="list the user's tokens")
        parser.add_argument("--revoke", metavar="PREFIX", help="end the token with this prefix")

    def handle(self, **options: Any) -> None:
        """Print the secret and nothing else, so that it can be piped."""
        try:
            user = User.objects.get(username=options["username"])
            self._do(user, options)
        except User.DoesNotExist as error:
            raise CommandError(f"There is no user named {options['username']!r}.") from error
        except (OperationalError, PoolTimeout) as error:
            raise CommandError(
                f"The database does not answer: start `manage.py up` ({error})."
            ) from error
        except ValueError as error:
            raise CommandError(str(error)) from error

    def _do(self, user: User, options: dict[str, Any]) -> None:
        """List, revoke or make."""
        if options["list"]:
            for token in tokens_of(user):
                end = f"until {token.expires_at:%Y-%m-%d}"
                words = [token.prefix, token.state, end, ",".join(token.scopes), token.name]
                self.stdout.write("\t".join(words))
        elif prefix := options["revoke"]:
            found = list(tokens_of(user).filter(prefix=prefix, revoked_at=None))
            if not found:
                raise CommandError(f"{user} has no token {prefix} that could be revoked.")
            for token in found:
                revoke_token(token)
            self.stdout.write(f"Revoked {prefix}.")
        else:
            scopes = [Scope(value) for value in options["scope"] or ["read"]]
            _, secret = create_token(user, options["name"][:80], scopes, options["days"])
            self.stdout.write(secret)
