"""Physical layout: packed arrays are already dense, and head rows are updated in place."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("metrics", "0001_initial")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE metrics_metricchunk ALTER COLUMN packed SET STORAGE EXTERNAL",
            "ALTER TABLE metrics_metricchunk ALTER COLUMN packed SET STORAGE EXTENDED",
        ),
        migrations.RunSQL(
            "ALTER TABLE metrics_metrictail ALTER COLUMN packed SET STORAGE EXTERNAL",
            "ALTER TABLE metrics_metrictail ALTER COLUMN packed SET STORAGE EXTENDED",
        ),
        migrations.RunSQL(
            "ALTER TABLE metrics_metrichead SET (fillfactor = 40)",
            "ALTER TABLE metrics_metrichead RESET (fillfactor)",
        ),
    ]
