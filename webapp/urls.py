"""Every address of the site; each app lists its own."""

from __future__ import annotations

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.urls import include, path, re_path
from django.views.defaults import page_not_found

from webapp.home.views.home import home
from webapp.ui.views.favicon import favicon

# One door with one limit on failed attempts: the admin asks the same sign-in page.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

# There is no mail, so a forgotten password is mended by `manage.py login-link`.
NO_RESET = {"exception": Exception("Passwords are not reset by mail here.")}

handler400 = "webapp.ui.views.errors.bad_request"
handler500 = "webapp.ui.views.errors.server_error"

urlpatterns = [
    path("", home, name="home"),
    path("favicon.ico", favicon, name="favicon"),
    path("accounts/", include("webapp.accounts.urls")),
    re_path("^accounts/password/reset/", page_not_found, NO_RESET),
    path("accounts/tokens/", include("webapp.api.token_urls")),
    path("accounts/webhooks/", include("webapp.webhooks.urls")),
    path("accounts/", include("allauth.account.urls")),
    path("api/v1/", include("webapp.api.urls")),
    path("runs/", include("webapp.runs.urls")),
    path("runs/", include("webapp.rollouts.urls")),
    path("runs/", include("webapp.comments.urls")),
    path("", include("webapp.metrics.urls")),
    path("datasets/", include("webapp.datasets.urls")),
    path("models/", include("webapp.registry.urls")),
    path("glass/", include("webapp.glass.urls")),
    path("workers/", include("webapp.workers_page.urls")),
    path("", include("webapp.people.urls")),
    path("search/", include("webapp.search.urls")),
    path("ui/", include("webapp.ui.urls")),
    path("admin/", admin.site.urls),
]
