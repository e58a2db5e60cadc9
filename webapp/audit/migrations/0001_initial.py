# The table, and the trigger that lets nobody change or delete an entry.

import django.utils.timezone
from django.db import migrations, models

REFUSE = """
CREATE FUNCTION audit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'The audit log is append-only: % is refused.', TG_OP
    USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON audit_auditentry
  FOR EACH ROW EXECUTE FUNCTION audit_refuse_change();
"""
ALLOW = """
DROP TRIGGER audit_append_only ON audit_auditentry;
DROP FUNCTION audit_refuse_change();
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("action", models.CharField(max_length=40)),
                ("actor", models.CharField(blank=True, max_length=150)),
                ("actor_key", models.BigIntegerField(null=True)),
                ("project_key", models.BigIntegerField(null=True)),
                ("project", models.CharField(blank=True, max_length=80)),
                ("kind", models.CharField(max_length=20)),
                ("key", models.CharField(blank=True, max_length=64)),
                ("label", models.CharField(max_length=200)),
                ("before", models.JSONField(default=dict)),
                ("after", models.JSONField(default=dict)),
                ("address", models.GenericIPAddressField(null=True)),
            ],
            options={
                "ordering": ("-pk",),
                "indexes": [
                    models.Index(fields=["project_key", "-id"], name="audit_of_project"),
                    models.Index(fields=["actor", "-id"], name="audit_of_actor"),
                ],
            },
        ),
        migrations.RunSQL(REFUSE, ALLOW),
    ]
