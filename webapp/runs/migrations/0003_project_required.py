import django.db.models.deletion
from django.db import migrations, models

import webapp.accounts.models


class Migration(migrations.Migration):

    dependencies = [
        ("runs", "0002_project"),
    ]

    operations = [
        migrations.AlterField(
            model_name="run",
            name="project",
            field=models.ForeignKey(default=webapp.accounts.models.main_project_pk, on_delete=django.db.models.deletion.PROTECT, related_name="runs", to="accounts.project"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["project", "-number"], name="run_by_project"),
        ),
    ]
