# Every run belongs to a project; those that were there go to the main one.

import django.db.models.deletion
from django.db import migrations, models


def into_main(apps, schema_editor):
    main = apps.get_model("accounts", "Project").objects.get(slug="main")
    apps.get_model("runs", "Run").objects.filter(project=None).update(project=main)


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0002_projects"),
        ("runs", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="project",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="runs", to="accounts.project"),
        ),
        migrations.RunPython(into_main, migrations.RunPython.noop),
    ]
