# Every dataset and import belongs to a project; those that were there go to the main one.

import django.db.models.deletion
from django.db import migrations, models


def into_main(apps, schema_editor):
    main = apps.get_model("accounts", "Project").objects.get(slug="main")
    for name in ("Dataset", "DatasetImport"):
        apps.get_model("datasets", name).objects.filter(project=None).update(project=main)


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0002_projects"),
        ("datasets", "0002_import_attempts"),
    ]

    operations = [
        migrations.AddField(
            model_name="dataset",
            name="project",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="datasets", to="accounts.project"),
        ),
        migrations.AddField(
            model_name="datasetimport",
            name="project",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="imports", to="accounts.project"),
        ),
        migrations.RunPython(into_main, migrations.RunPython.noop),
    ]
