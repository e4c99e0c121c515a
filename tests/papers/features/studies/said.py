"""A study end to end: run, law, claims, drawing, and what every record must have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from saltus.core.lab import Lab


def told(one: Any, root: Path | None = None) -> tuple[Any, dict[str, Any]]:
    """**Returns** the record, and the claims by name."""
    record = one.run(Lab(root=root))
    law = one.law(record) if hasattr(one, "law") else None
    claims = list(one.claims(record, law))
    json.dumps([c.as_json() for c in claims], allow_nan=False)
    named = {c.id: c for c in claims}
    assert len(named) == len(claims) > 0
    assert all(c.expected or c.because for c in claims)
    assert all(len(c.says) > 20 and "\n" not in c.says for c in claims)
    assert one.draw(record, law).axes
    for name, values in record.variables.items():
        assert values.dtype != object, name
        if name in record.data_vars:
            assert values.attrs.get("long_name"), name
    return record, named
