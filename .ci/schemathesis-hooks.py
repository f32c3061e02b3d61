"""Requests that .ci/schemathesis leaves out: what the API takes by its contract and a schema calls wrong, and what only costs time."""

import re

import schemathesis

whole = re.compile(r"[1-9][0-9]*")


@schemathesis.hook
def filter_case(context, case):
    return not (has_lenient_page(case.query) or has_blank(case.body) or repeats_filter(case))


tried = set()


def repeats_filter(case):
    """One value of a wrong type for each operator of a filter: a list with twelve filters would get 1,000, which one function refuses."""
    data = case.meta.phase.data if case.meta else None
    name = getattr(data, "parameter", None) or ""
    if not name.startswith("filter[") or str(getattr(data, "scenario", "")) != "incorrect_type":
        return False
    key = (case.operation.label, name, data.description)
    is_known = key in tried
    tried.add(key)
    return is_known


def has_lenient_page(query):
    """docs/api.md, "Lists": anything but a whole number from 1 counts as the default."""
    given = query if isinstance(query, dict) else {}
    return any(name in given and not whole.fullmatch(str(given[name])) for name in ("page", "per_page"))


def has_blank(value):
    """docs/mapping.md, "How a body is checked": a blank text counts as null."""
    if isinstance(value, str):
        return value.strip() == ""
    if isinstance(value, dict):
        return any(has_blank(item) for item in value.values())
    return isinstance(value, list) and any(has_blank(item) for item in value)
