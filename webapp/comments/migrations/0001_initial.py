import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ("runs", "0003_project_required"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Comment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.TextField()),
                ("step", models.PositiveBigIntegerField(blank=True, null=True)),
                ("group", models.CharField(blank=True, max_length=200)),
                ("completion", models.PositiveIntegerField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("edited_at", models.DateTimeField(blank=True, null=True)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                ("deleted_by", models.CharField(blank=True, max_length=150)),
                ("author", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="comments", to=settings.AUTH_USER_MODEL)),
                ("run", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="comments", to="runs.run")),
            ],
            options={
                "ordering": ("pk",),
                "indexes": [models.Index(fields=["run", "id"], name="comments_of_run")],
            },
        ),
        migrations.CreateModel(
            name="CommentEdit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.TextField()),
                ("until", models.DateTimeField(default=django.utils.timezone.now)),
                ("comment", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="edits", to="comments.comment")),
            ],
            options={"ordering": ("pk",)},
        ),
    ]
