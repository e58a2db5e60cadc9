import django.db.models.deletion
from django.db import migrations, models

import webapp.accounts.models


class Migration(migrations.Migration):

    dependencies = [
        ("datasets", "0003_project"),
    ]

    operations = [
        migrations.AlterField(
            model_name="dataset",
            name="project",
            field=models.ForeignKey(default=webapp.accounts.models.main_project_pk, on_delete=django.db.models.deletion.PROTECT, related_name="datasets", to="accounts.project"),
        ),
        migrations.AlterField(
            model_name="datasetimport",
            name="project",
            field=models.ForeignKey(default=webapp.accounts.models.main_project_pk, on_delete=django.db.models.deletion.PROTECT, related_name="imports", to="accounts.project"),
        ),
        migrations.AlterField(
            model_name="dataset",
            name="name",
            field=models.CharField(max_length=120),
        ),
        migrations.AddConstraint(
            model_name="dataset",
            constraint=models.UniqueConstraint(fields=("project", "name"), name="dataset_names_differ"),
        ),
    ]
