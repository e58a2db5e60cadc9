"""Names are found despite a slip of the fingers, which PostgreSQL's trigrams measure.

The extension is a trusted one: the owner of the database may create it.
"""

from __future__ import annotations

from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations


class Migration(migrations.Migration):
    operations = [TrigramExtension()]
