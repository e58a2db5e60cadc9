"""What each address answers to whom: the table that `test_every_url.py` walks.

A new view gets its line in `RULES`, under `namespace:name`. The run, dataset, import and export
asked for belong to the main project and to somebody else; each person but the outsider has one role
in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PEOPLE = ("anonymous", "outsider", "viewer", "reviewer", "curator", "researcher", "admin")
SIGN_IN, DONE, SHOWN, REFUSED, HIDDEN, NO_METHOD, UNREADABLE = 302, 302, 200, 403, 404, 405, 422
UNAUTHORISED, GONE = 401, 410

Answers = dict[str, int]


def everybody(status: int, anonymous: int = SIGN_IN, **others: int) -> Answers:
    """One answer for who is signed in, another for who is not, and exceptions by name."""
    assert set(others) <= set(PEOPLE)
    return {**dict.fromkeys(PEOPLE, status), "anonymous": anonymous, **others}


def members(status: int = SHOWN, **others: int) -> Answers:
    """Something of the project: for an outsider it does not exist."""
    return everybody(status, **{"outsider": HIDDEN, **others})


def only(
    *roles: str, status: int = SHOWN, others: int = REFUSED, outsider: int = HIDDEN
) -> Answers:
    """What some roles may do; other members are refused."""
    return everybody(others, **{"outsider": outsider, **dict.fromkeys(roles, status)})


@dataclass(frozen=True)
class Rule:
    """What one address answers."""

    get: Answers
    post: Answers = field(default_factory=lambda: everybody(NO_METHOD))
    body: dict[str, str] = field(default_factory=dict)
    """What is posted."""
    query: str = ""
    """What is asked for."""


ALWAYS = everybody(SHOWN)
ONES_OWN = everybody(SIGN_IN)
"""allauth leads on to where something can be done: for these, choosing a password."""
BY_LINK = everybody(REFUSED)
"""There is no password to ask again of somebody who came by a link."""
SPENT = everybody(GONE, anonymous=GONE)
OPEN = Rule(everybody(SHOWN, anonymous=SHOWN), everybody(SHOWN, anonymous=SHOWN))
NOWHERE = everybody(HIDDEN)
READ = Rule(OPEN.get, everybody(NO_METHOD, anonymous=NO_METHOD))
NO_RESET = (
    "accounts/password/reset/",
    "account_reset_password",
    "account_reset_password_done",
    "account_reset_password_from_key",
    "account_reset_password_from_key_done",
)
"""Passwords are not reset by mail."""
NO_KEY = everybody(HIDDEN, anonymous=HIDDEN)
SENT_ON = everybody(302, anonymous=302)
SITE_ADMIN = Rule(everybody(SIGN_IN), everybody(SIGN_IN))
"""Django's admin: for staff alone; roles of a project open nothing of it."""
A_RUN = Rule(members())
API = Rule(members(anonymous=UNAUTHORISED), everybody(NO_METHOD, anonymous=UNAUTHORISED))
CURVES = Rule(API.get, API.post, query="run={run.pk}&key=loss")
LAUNCHERS = ("researcher", "admin")
UPLOADERS = ("curator", "researcher", "admin")
CURATORS = ("curator", "admin")
COMMENTERS = ("reviewer", "curator", "researcher", "admin")
LAUNCH_GET = only(*LAUNCHERS, outsider=REFUSED)
LAUNCH_POST = only(*LAUNCHERS, status=UNREADABLE, outsider=REFUSED)
IMPORT = only(*CURATORS, others=HIDDEN)
"""An upload that is no dataset yet: its owner's and the curators'."""
NO_TOKEN = everybody(UNAUTHORISED, anonymous=UNAUTHORISED)
"""A session opens no operation of the API: `tests/webapp/api/operation_rules.py` has its tokens."""
NOT_POSTED = everybody(NO_METHOD, anonymous=NO_METHOD)
API_READ = Rule(NO_TOKEN, NOT_POSTED)
API_DEED = Rule(NOT_POSTED, NO_TOKEN)
API_BOTH = Rule(NO_TOKEN, NO_TOKEN)
READS = (
    *("get_me", "list_presets", "get_preset", "list_workers"),
    *("get_run", "delete_run", "get_spec", "get_spec_yaml", "get_history"),
    *("list_metrics", "get_curves", "get_curves_csv", "get_logs"),
    *("list_rollouts", "get_rollouts", "list_checkpoints", "list_evaluations"),
    *("list_datasets", "get_dataset", "list_records", "get_import"),
    *("get_export", "delete_export", "download_export"),
)
"""At addresses that take GET; `delete_run` shares its address with `get_run`, and so on."""
DEEDS = (
    *("check_spec", "restart_run", "stop_run", "pause_run", "resume_run"),
    *("evaluate_run", "checkpoint_run", "archive_run", "unarchive_run"),
    *("upload_file", "begin_import", "cancel_export"),
)
ONES_OWN_ALONE = NOWHERE
"""The token and the webhook asked for are somebody else's, so they do not exist."""

MANAGED = Rule(only("admin"), only("admin", status=UNREADABLE))
"""A page of the project's admins."""

RULES: dict[str, Rule] = {
    "home": Rule(ALWAYS),
    "favicon": Rule(SENT_ON, READ.post),
    "runs:index": Rule(ALWAYS),
    "runs:first_steps": Rule(ALWAYS),
    "runs:launch": Rule(LAUNCH_GET, LAUNCH_POST, body={"mode": "yaml", "yaml": "]"}),
    "runs:launch_preset": Rule(
        everybody(NO_METHOD),
        only(*LAUNCHERS, status=DONE, outsider=REFUSED),
        body={"preset": "tiny-model"},
    ),
    "runs:check": Rule(everybody(NO_METHOD), LAUNCH_GET, body={"mode": "yaml", "yaml": "]"}),
    "runs:copy_as": Rule(everybody(NO_METHOD), LAUNCH_GET, body={"mode": "yaml", "yaml": "]"}),
    "runs:detail": A_RUN,
    "runs:phase": A_RUN,
    "runs:changed": A_RUN,
    "runs:evaluations": A_RUN,
    "runs:row": A_RUN,
    "runs:rollouts": A_RUN,
    "runs:config": A_RUN,
    "runs:config_yaml": A_RUN,
    "runs:logs": A_RUN,
    "runs:log_piece": A_RUN,
    "runs:checkpoints": A_RUN,
    "runs:control": Rule(only("admin"), only("admin", status=DONE)),
    "rollouts:index": A_RUN,
    "comments:thread": Rule(members(), only(*COMMENTERS, status=UNREADABLE)),
    "comments:edit": Rule(members(REFUSED), members(REFUSED)),
    "comments:delete": Rule(only("admin"), only("admin", status=DONE)),
    "metrics:curves": CURVES,
    "metrics:csv": CURVES,
    "metrics:json": CURVES,
    "metrics:keys": API,
    "metrics:report": A_RUN,
    "metrics:events": Rule(
        API.get, everybody(NO_METHOD, anonymous=NO_METHOD), query="topics=run:{run.pk}"
    ),
    "metrics:news": Rule(API.get, API.post, query="topics=run:{run.pk}"),
    "datasets:index": Rule(ALWAYS),
    "datasets:upload": Rule(
        only(*UPLOADERS, outsider=REFUSED), only(*UPLOADERS, status=UNREADABLE, outsider=REFUSED)
    ),
    "datasets:detail": A_RUN,
    "datasets:check": Rule(
        members(), only(*LAUNCHERS, status=UNREADABLE), body={"action": "launch"}
    ),
    "datasets:import": Rule(IMPORT, only(*CURATORS, status=UNREADABLE, others=HIDDEN)),
    "datasets:import_progress": Rule(IMPORT),
    "datasets:import_errors": Rule(IMPORT),
    "registry:index": Rule(ALWAYS),
    "registry:bases": Rule(ALWAYS),
    "registry:exports": Rule(ALWAYS),
    "registry:new_export": Rule(
        only(*LAUNCHERS), only(*LAUNCHERS, status=DONE), body={"dtype": "bfloat16"}
    ),
    "registry:export": A_RUN,
    "registry:export_progress": A_RUN,
    "registry:cancel": Rule(everybody(NO_METHOD), only("admin", status=DONE)),
    "registry:keep": Rule(everybody(NO_METHOD), only("admin", status=DONE), body={"keep": "1"}),
    "registry:use": Rule(everybody(NO_METHOD), only(*LAUNCHERS, status=DONE)),
    "registry:delete": Rule(only("admin"), only("admin", status=DONE)),
    "registry:download": A_RUN,
    "glass:index": Rule(
        ALWAYS, only(*LAUNCHERS, status=UNREADABLE, outsider=REFUSED), body={"model": "base:tiny"}
    ),
    "glass:detail": A_RUN,
    "glass:live": A_RUN,
    "glass:tokens": A_RUN,
    "glass:result": A_RUN,
    "glass:cancel": Rule(everybody(NO_METHOD), only("admin", status=DONE)),
    "glass:delete": Rule(everybody(NO_METHOD), only("admin", status=DONE)),
    "workers:index": Rule(ALWAYS),
    "ui:language": Rule(
        everybody(NO_METHOD, anonymous=NO_METHOD),
        everybody(DONE, anonymous=DONE),
        body={"language": "zh-hans"},
    ),
    "ui:texts": READ,
    "search:search": Rule(ALWAYS),
    "ui:model_progress": Rule(ALWAYS, ALWAYS),
    "ui:styleguide": Rule(ALWAYS, ALWAYS),
    **dict.fromkeys((f"api:{name}" for name in READS), API_READ),
    **dict.fromkeys((f"api:{name}" for name in DEEDS), API_DEED),
    **dict.fromkeys(
        ("api:list_runs", "api:launch_run", "api:list_exports", "api:make_export"), API_BOTH
    ),
    "api:openapi-json": Rule(
        everybody(SHOWN, anonymous=UNAUTHORISED), everybody(SHOWN, anonymous=UNAUTHORISED)
    ),
    "api:openapi-view": Rule(ALWAYS, ALWAYS),
    "api:api-root": Rule(NO_KEY, NO_KEY),
    "tokens:index": Rule(ALWAYS, everybody(UNREADABLE)),
    "tokens:revoke": Rule(ONES_OWN_ALONE, ONES_OWN_ALONE),
    "webhooks:index": Rule(ALWAYS, everybody(UNREADABLE)),
    "webhooks:detail": Rule(ONES_OWN_ALONE),
    "webhooks:delete": Rule(ONES_OWN_ALONE),
    "webhooks:act": Rule(everybody(NO_METHOD), ONES_OWN_ALONE),
    "accounts:login_link": Rule(SPENT, SPENT),
    "account_login": Rule(everybody(302, anonymous=SHOWN), everybody(302, anonymous=SHOWN)),
    "account_logout": Rule(everybody(SHOWN), everybody(302)),
    "account_inactive": READ,
    "account_signup": Rule(everybody(302, anonymous=SHOWN), everybody(302, anonymous=SHOWN)),
    "account_reauthenticate": Rule(BY_LINK, BY_LINK),
    "account_request_reauthentication_code": Rule(BY_LINK, BY_LINK),
    "account_confirm_reauthentication_code": Rule(ONES_OWN, ONES_OWN),
    "account_email": Rule(ALWAYS, ONES_OWN),
    "account_email_verification_sent": READ,
    "account_change_password": Rule(ONES_OWN, ONES_OWN),
    "account_set_password": Rule(ALWAYS, ALWAYS),
    "account_confirm_login_code": Rule(SENT_ON, SENT_ON),
    "account_confirm_email": Rule(NO_KEY, NO_KEY),
    **dict.fromkeys(NO_RESET, Rule(NOWHERE, NOWHERE)),
    "people:index": Rule(everybody(302)),
    "people:account": Rule(ALWAYS),
    "people:invitation": Rule(NO_KEY, NO_KEY),
    "people:projects": Rule(ALWAYS, everybody(REFUSED)),
    "people:switch": Rule(everybody(NO_METHOD), everybody(302)),
    "people:settings": MANAGED,
    "people:archive": Rule(
        everybody(NO_METHOD), only("admin", status=UNREADABLE), body={"to": "archive"}
    ),
    "people:members": Rule(members(), MANAGED.post),
    "people:role": Rule(everybody(NO_METHOD), only("admin", status=UNREADABLE)),
    "people:remove": Rule(only("admin"), only("admin", status=DONE)),
    "people:invitations": MANAGED,
    "people:revoke": Rule(everybody(NO_METHOD), only("admin", status=DONE)),
    "people:audit": Rule(only("admin")),
    "people:audit_csv": Rule(only("admin")),
    "people:users": Rule(everybody(REFUSED), everybody(REFUSED)),
    "people:switch_user": Rule(everybody(NO_METHOD), everybody(REFUSED)),
    "people:user_link": Rule(everybody(NO_METHOD), everybody(REFUSED)),
    "people:whole_audit": Rule(everybody(REFUSED)),
    "people:whole_audit_csv": Rule(everybody(REFUSED)),
    "admin": SITE_ADMIN,
}
"""By the view's name; everything under `admin/` has one rule."""
