"""Prose with numbers that come from records: `{{fig5.typical.value% as-drawn}}`.

{{STUDY.CLAIM.FIELD}}            value low high n threshold interval verdict says because, control
{{STUDY.CLAIM.FIELD%}}           as a percentage
{{STUDY.CLAIM.FIELD as-drawn}}   of the other reading (as written unless said)
{{STUDY.settings.NAME}}          a setting of the record
{{table.NAME}}                   a table of pages.tables
"""

from __future__ import annotations

import re

from pages import tables
from pages.claims import escaped, verdict
from pages.records import PLAIN, READINGS, Found, readings
from saltus import python
from saltus.core import settings
from saltus.core.claim import Claim
from saltus.core.errors import BadInput
from saltus.report.table import condition, interval, number

TAG = re.compile(r"\{\{\s*([\w-]+)\.(?:([\w.-]+)\.)?([\w-]+)(%?)(?:\s+(as-written|as-drawn))?\s*\}\}")
FIELDS = ("value", "low", "high", "n", "threshold", "interval", "verdict", "says", "because", "control")
GAP = "(no record)"


def tags(text: str) -> list[re.Match[str]]:
    """Every tag; braces that are none are an error."""
    found = list(TAG.finditer(text))
    if len(found) != text.count("{{"):
        rest = TAG.sub("", text)
        start = rest.index("{{")
        raise BadInput(f"not a tag: {rest[start : start + 60].splitlines()[0]}")
    for tag in found:
        _check(tag)
    return found


def fill(text: str, found: Found, *, draft: bool = False) -> str:
    """The text with every tag replaced; in a draft, what has no record yet says so."""
    tags(text)

    def one(tag: re.Match[str]) -> str:
        try:
            return _value(tag, found)
        except BadInput:
            if draft:
                return GAP
            raise

    return TAG.sub(one, text)


def _check(tag: re.Match[str]) -> None:
    study, claim, field, _, _ = tag.groups()
    if study == "table":
        if field not in tables.TABLES or claim:
            raise BadInput(f"{tag[0]}: no table {field!r}")
    elif study not in {id.split("/")[1] for id in python.studies()}:
        raise BadInput(f"{tag[0]}: no study {study}")
    elif not claim or (claim != "settings" and field not in FIELDS):
        raise BadInput(f"{tag[0]}: write {{{{STUDY.CLAIM.FIELD}}}} with FIELD one of {', '.join(FIELDS)}")


def _value(tag: re.Match[str], found: Found) -> str:
    study, claim_id, field, percent, reading = tag.groups()
    if study == "table":
        return tables.TABLES[field](found)
    paper = next(iter(found))[0].split("/")[0] if found else "sim"
    id = f"{paper}/{study}"
    if id not in python.studies():
        raise BadInput(f"{tag[0]}: no study {id}")
    info = python.studies()[id]
    key = (id, (reading or READINGS[0]) if readings(info) != (PLAIN,) else PLAIN)
    if key not in found:
        raise BadInput(f"{tag[0]}: no record of {' '.join(key)}")
    if claim_id == "settings":
        return settings.as_text(getattr(found[key].study, field))
    claims = {c.id: c for c in found[key].claims}
    if claim_id not in claims:
        raise BadInput(f"{tag[0]}: {id} has no claim {claim_id!r}; it has {', '.join(claims)}")
    return _shown(claims[claim_id], field, bool(percent))


def _shown(claim: Claim, field: str, percent: bool) -> str:
    if field in ("says", "because"):
        return escaped(getattr(claim, field))
    if field == "verdict":
        return verdict(claim)
    if field == "interval":
        return interval(claim)
    if field == "threshold":
        return condition(claim)
    if field == "n":
        return str(claim.estimate.n)
    x = claim.control.estimate.value if field == "control" else getattr(claim.estimate, field)
    return tables.percent(x) if percent else number(x)
