"""Addresses of people, projects, invitations and the audit log."""

from __future__ import annotations

from django.urls import path

from webapp.people.views import account, audit, invitation, invitations, members, projects, users

app_name = "people"
urlpatterns = [
    path("people/", members.home, name="index"),
    path("account/", account.account, name="account"),
    path("invitation/<str:token>/", invitation.invitation, name="invitation"),
    path("projects/", projects.index, name="projects"),
    path("projects/switch/", projects.switch, name="switch"),
    path("projects/<slug:slug>/", projects.settings, name="settings"),
    path("projects/<slug:slug>/archive/", projects.archive, name="archive"),
    path("projects/<slug:slug>/people/", members.index, name="members"),
    path("projects/<slug:slug>/people/<int:user>/role/", members.role, name="role"),
    path("projects/<slug:slug>/people/<int:user>/remove/", members.remove, name="remove"),
    path("projects/<slug:slug>/invitations/", invitations.index, name="invitations"),
    path("projects/<slug:slug>/invitations/<int:pk>/revoke/", invitations.revoke, name="revoke"),
    path("projects/<slug:slug>/audit/", audit.project_audit, name="audit"),
    path("projects/<slug:slug>/audit.csv", audit.project_audit_csv, name="audit_csv"),
    path("users/", users.index, name="users"),
    path("users/<int:pk>/switch/", users.switch, name="switch_user"),
    path("users/<int:pk>/link/", users.link, name="user_link"),
    path("audit/", audit.whole_audit, name="whole_audit"),
    path("audit.csv", audit.whole_audit_csv, name="whole_audit_csv"),
]
