"""Users and projects in the admin.

Here somebody becomes a member of a project, or gets another role in it.
"""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from webapp.accounts.models import Membership, Project, User
from webapp.audit.admin import AuditedAdmin


@admin.register(User)
class AccountAdmin(AuditedAdmin, UserAdmin, ModelAdmin):  # type: ignore[misc,type-arg]  # no types
    """Django's user pages in unfold's skin."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm

    def has_delete_permission(self, *_: object) -> bool:
        """Accounts are closed: what somebody did stays theirs, and a project its last admin."""
        return False


class MembershipInline(TabularInline):  # type: ignore[misc]  # unfold has no types
    """The members of a project with their roles."""

    model = Membership
    fields = ("user", "role")
    autocomplete_fields = ("user",)
    extra = 1


@admin.register(Project)
class ProjectAdmin(AuditedAdmin, ModelAdmin):  # type: ignore[misc]  # unfold has no types
    """Projects. One that holds runs or datasets cannot be deleted, and slugs stay as they are."""

    list_display = ("name", "slug", "created_at", "archived_at")
    search_fields = ("name", "slug")
    fields = ("name", "slug", "created_at", "archived_at")
    inlines = (MembershipInline,)

    def get_readonly_fields(self, _: HttpRequest, project: Project | None = None) -> list[str]:
        """The slug stands in addresses: it is chosen once."""
        return ["created_at", "archived_at", *(["slug"] if project is not None else [])]
