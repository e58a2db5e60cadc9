from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('datasets', '0004_project_required'),
    ]

    operations = [
        migrations.AddField(
            model_name='datasetimport',
            name='message_parts',
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
