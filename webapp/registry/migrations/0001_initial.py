import django.db.models.deletion
import django.utils.timezone
import webapp.runs.ids
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('runs', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ModelExport',
            fields=[
                ('id', models.UUIDField(default=webapp.runs.ids.new_uuid7, editable=False, primary_key=True, serialize=False)),
                ('step', models.PositiveIntegerField()),
                ('saved_at', models.DateTimeField()),
                ('dtype', models.CharField(max_length=10)),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('ready', 'Ready'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('expired', 'Expired')], default='queued', max_length=10)),
                ('message', models.TextField(blank=True)),
                ('advice', models.TextField(blank=True)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('done', models.PositiveBigIntegerField(default=0)),
                ('total', models.PositiveBigIntegerField(default=0)),
                ('doing', models.CharField(blank=True, max_length=100)),
                ('files', models.JSONField(blank=True, default=list)),
                ('check_result', models.JSONField(blank=True, null=True)),
                ('parameters', models.PositiveBigIntegerField(default=0)),
                ('size_bytes', models.PositiveBigIntegerField(default=0)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('seen_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('checkpoint', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='exports', to='runs.checkpoint')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='exports', to=settings.AUTH_USER_MODEL)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='exports', to='runs.run')),
            ],
            options={
                'ordering': ('-created_at',),
                'indexes': [models.Index(fields=['state', 'seen_at'], name='exports_waiting')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state__in', ('queued', 'running', 'ready'))), fields=('run', 'step', 'saved_at', 'dtype'), name='export_one_of_a_kind')],
            },
        ),
    ]
