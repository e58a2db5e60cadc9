# The main project, with everybody who was there before projects were.

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

ROLES = ["viewer", "reviewer", "curator", "researcher", "admin"]


def make_main(apps, schema_editor):
    project = apps.get_model("accounts", "Project").objects.create(slug="main", name="Main")
    memberships = apps.get_model("accounts", "Membership").objects
    for user in apps.get_model("accounts", "User").objects.order_by("pk"):
        role = "admin" if user.is_superuser or user.is_staff else "researcher"
        memberships.create(project=project, user=user, role=role)


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Project",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slug", models.SlugField(max_length=60, unique=True)),
                ("name", models.CharField(max_length=80)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("archived_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={"ordering": ("name", "pk")},
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("role", models.CharField(choices=[(role, role.title()) for role in ROLES], max_length=12)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("project", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="memberships", to="accounts.project")),
                ("user", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="memberships", to=settings.AUTH_USER_MODEL)),
            ],
            options={
                "ordering": ("user__username",),
                "constraints": [
                    models.UniqueConstraint(fields=("project", "user"), name="membership_one_role"),
                    models.CheckConstraint(condition=models.Q(("role__in", ROLES)), name="membership_known_role"),
                ],
            },
        ),
        migrations.RunPython(make_main, migrations.RunPython.noop),
    ]
