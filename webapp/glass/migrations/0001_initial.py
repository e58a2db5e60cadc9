import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import webapp.accounts.models
import webapp.runs.ids


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ("accounts", "0002_projects"),
        ("runs", "0003_project_required"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="GlassStep",
            fields=[
                ("id", models.UUIDField(default=webapp.runs.ids.new_uuid7, editable=False, primary_key=True, serialize=False)),
                ("title", models.CharField(max_length=200)),
                ("spec", models.JSONField()),
                ("idempotency_key", models.CharField(blank=True, max_length=64)),
                ("state", models.CharField(choices=[("waiting", "Waiting"), ("running", "Running"), ("done", "Done"), ("failed", "Failed"), ("cancelled", "Cancelled")], default="waiting", max_length=10)),
                ("cause", models.CharField(blank=True, max_length=60)),
                ("message", models.TextField(blank=True)),
                ("advice", models.TextField(blank=True)),
                ("summary", models.JSONField(blank=True, default=dict)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("worker", models.CharField(blank=True, max_length=255)),
                ("cancel_asked", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("seen_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("checkpoint", models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="glass_steps", to="runs.checkpoint")),
                ("owner", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="glass_steps", to=settings.AUTH_USER_MODEL)),
                ("project", models.ForeignKey(default=webapp.accounts.models.main_project_pk, on_delete=django.db.models.deletion.PROTECT, related_name="glass_steps", to="accounts.project")),
                ("run", models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="glass_steps", to="runs.run")),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [models.Index(fields=["state", "created_at"], name="glass_by_state")],
                "constraints": [
                    models.UniqueConstraint(condition=models.Q(("idempotency_key", ""), _negated=True), fields=("owner", "idempotency_key"), name="glass_one_step_per_key"),
                ],
            },
        ),
    ]
