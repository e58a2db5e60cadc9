"""Users in the admin."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from webapp.accounts.models import User


@admin.register(User)
class AccountAdmin(UserAdmin, ModelAdmin):  # type: ignore[misc,type-arg]  # unfold has no types
    """Django's user pages in unfold's skin."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
