"""Django settings: one file. Secrets and addresses come from the environment and fail loudly.

Without any variable set, it points at the embedded engines that `manage.py up` starts in `var/`.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from csp.constants import NONCE, NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from webapp.launcher import paths
from webapp.launcher.errors import LauncherError
from webapp.launcher.value_rules import YES, split_list
from webapp.launcher.variables import check_environment, read_variable

try:
    check_environment()
except LauncherError as error:
    raise ImproperlyConfigured(str(error)) from error

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = paths.data_dir()
RUNS_DIR = DATA_DIR / "runs"
UPLOADS_DIR = DATA_DIR / "uploads"
GLASS_DIR = DATA_DIR / "glass"
MODELS_DIR = DATA_DIR / "models"
EXPORTS_DIR = DATA_DIR / "exports"


def env_bool(name: str, default: bool) -> bool:
    """A yes-or-no variable, which was checked before."""
    value = os.environ.get(name, "")
    return value.lower() in YES if value else default


def env_list(name: str, default: str = "") -> list[str]:
    """A comma-separated variable."""
    return split_list(os.environ.get(name) or default)


def secret_key() -> str:
    """SECRET_KEY from the environment, else one that is made once and kept in the data folder."""
    if value := read_variable("SECRET_KEY"):
        return value
    file = DATA_DIR / "secret_key"
    DATA_DIR.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        aside = DATA_DIR / f".secret_key-{os.getpid()}"
        aside.touch(mode=0o600)
        aside.write_text(secrets.token_urlsafe(50))
        try:
            os.link(aside, file)  # fails when another process was first
        finally:
            aside.unlink()
    return file.read_text()


def database() -> dict[str, Any]:
    """Django's database settings. Only the ASGI server pools: a pool does not survive a fork."""
    try:
        entry: dict[str, Any] = dict(paths.databases_entry())
    except LauncherError as error:
        raise ImproperlyConfigured(str(error)) from error
    if env_bool("TEMPER_DATABASE_POOL", default=False):
        pool = {"min_size": 1, "max_size": 12, "timeout": 20, "max_idle": 60}
        entry["OPTIONS"] = {**entry["OPTIONS"], "pool": pool}
    return {**entry, "CONN_HEALTH_CHECKS": True}


SECRET_KEY = secret_key()
DEBUG = env_bool("TEMPER_DEBUG", default=False)
ALLOWED_HOSTS = env_list("TEMPER_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env_list("TEMPER_TRUSTED_ORIGINS")
USE_TLS = env_bool("TEMPER_TLS", default=False)
TRUSTED_PROXIES = env_list("TEMPER_TRUSTED_PROXIES")
METRICS_TOKEN = read_variable("TEMPER_METRICS_TOKEN")
LOG_REQUESTS = env_bool("TEMPER_LOG_REQUESTS", default=False)

DATABASES = {"default": database()}
REDIS_URL = paths.redis_url()
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "csp",
    "django_htmx",
    "ninja",
    "webapp.launcher",
    "webapp.audit",
    "webapp.health",
    "webapp.accounts",
    "webapp.api",
    "webapp.datasets",
    "webapp.runs",
    "webapp.metrics",
    "webapp.rollouts",
    "webapp.evaluation",
    "webapp.registry",
    "webapp.glass",
    "webapp.webhooks",
    "webapp.workers_page",
    "webapp.comments",
    "webapp.people",
    "webapp.search",
    "webapp.home",
    "webapp.ui",
]

MIDDLEWARE = [
    "webapp.health.middleware.probes",  # before the check of the host name and the redirect
    "webapp.api.middleware.ProblemDocuments",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "webapp.health.middleware.request_clock",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "webapp.ui.middleware.LanguageOfPeople",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "webapp.ui.signed_out.SignedInOrToldSo",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "webapp.ui.middleware.FragmentsAreNotPages",
    "webapp.audit.source.remember_source",
]

ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "webapp.ui.context_processors.shell",
            ],
        },
    }
]

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "webapp.accounts.passwords.LongEnough"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_REDIRECT_URL = "home"
LOGIN_URL = "account_login"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_ADAPTER = "webapp.accounts.adapter.ClosedSignupAdapter"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_RATE_LIMITS = {"invitation": "20/m/ip"}
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"  # no mail: links go by hand

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = sorted((BASE_DIR / "webapp").glob("*/locale"))
"""Named, so that our words win over the same words of libraries."""
LANGUAGE_COOKIE_NAME = "temper_language"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_SAMESITE = "Lax"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = DATA_DIR / "staticfiles"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
UPLOADS_DIR.mkdir(parents=True, exist_ok=True)
FILE_UPLOAD_TEMP_DIR = UPLOADS_DIR  # not /tmp, which may be small
DATA_UPLOAD_MAX_MEMORY_SIZE = 5_000_000
MOST_BODY_BYTES = 6_000_000
MOST_UPLOAD_BYTES = 4_100_000_000  # a dataset file of 4 GB and the form around it
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000  # a launch form of a thousand domains
WEBHOOK_ALLOW_PRIVATE = env_bool("TEMPER_WEBHOOK_ALLOW_PRIVATE", default=False)

SESSION_ENGINE = "webapp.accounts.session_store"
SESSION_COOKIE_SECURE = USE_TLS
CSRF_COOKIE_SECURE = USE_TLS
HSTS = os.environ.get("TEMPER_HSTS") or "host"
SECURE_HSTS_SECONDS = 31_536_000 if USE_TLS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = USE_TLS and HSTS in {"subdomains", "preload"}
SECURE_HSTS_PRELOAD = USE_TLS and HSTS == "preload"
SECURE_SSL_REDIRECT = USE_TLS
# No SECURE_PROXY_SSL_HEADER: it would believe everybody. uvicorn believes TEMPER_TRUSTED_PROXIES
# alone, and tells Django the scheme and the client's address.
SILENCED_SYSTEM_CHECKS = [
    # What a whole domain must do is its owner's decision: TEMPER_HSTS says it.
    *(["security.W005"] if HSTS == "host" else []),
    *(["security.W021"] if HSTS != "preload" else []),
]
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
CONTENT_SECURITY_POLICY = {
    "EXCLUDE_URL_PREFIXES": ["/admin"],
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "manifest-src": [SELF],
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
        "json": {
            "()": "pythonjsonlogger.json.JsonFormatter",
            "fmt": "%(levelname)s %(name)s %(process)d %(message)s",
            "rename_fields": {"levelname": "level", "name": "logger"},
            "timestamp": "time",
        },
    },
    "filters": {"secrets": {"()": "webapp.accounts.log_filter.HideSecrets"}},
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": os.environ.get("TEMPER_LOG_FORMAT") or "text",
            "filters": ["secrets"],
        }
    },
    "root": {"handlers": ["console"], "level": os.environ.get("TEMPER_LOG_LEVEL") or "INFO"},
}
