import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("datasets", "0004_project_required"),
        ("glass", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="glassstep",
            name="kind",
            field=models.CharField(choices=[("step", "Step"), ("tryout", "Tryout")], default="step", max_length=10),
        ),
        migrations.AddField(
            model_name="glassstep",
            name="version",
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="tryouts", to="datasets.datasetversion"),
        ),
    ]
