from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('datasets', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='datasetimport',
            name='attempts',
            field=models.PositiveSmallIntegerField(default=0),
        ),
    ]
