"""The one address that `up` and `login-link` must spell: that of the sign-in link.

Used while a link is made. The whole site's addresses would load every page's code into `up`, two
seconds and a hundred megabytes for one path. The prefix is the one in `webapp/urls.py`; the tests
follow a link of each command.
"""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [path("accounts/", include("webapp.accounts.urls"))]
