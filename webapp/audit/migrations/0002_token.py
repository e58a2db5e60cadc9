# The API token that a deed was done with. Entries that are there already have none; the trigger lets
# that pass, since a new column updates no row.

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("audit", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="auditentry",
            name="token",
            field=models.CharField(blank=True, max_length=110),
        ),
    ]
