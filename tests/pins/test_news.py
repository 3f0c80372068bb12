import pytest

from release.pins.news import News, newest

TAGS = ["v3.6.0", "v3.7.0-rc1", "v3.7.0", "v3.10.0", "v4.0.0rc1", "nightly-2026-01-01", "v3.9.1"]


@pytest.mark.parametrize(
    ("than", "what"),
    [("3.6.0", "v3.10.0"), ("3.10.0", None), ("3.10.0a1", "v4.0.0rc1"), ("4.0.0rc1", None), ("5.0", None)],
)
def test_the_newest_is_found_among_tags(than: str, what: str | None) -> None:
    assert newest("Triton", TAGS, than) == (News(topic="Triton", what=what) if what else None)


def test_the_newest_is_found_among_versions_of_npm() -> None:
    versions = ["0.28.0", "0.29.0", "315.0.0-alpha.2", "315.0.0-alpha.10", "314.0.1"]
    assert newest("Pyodide", versions, "315.0.0-alpha.2") == News(topic="Pyodide", what="315.0.0-alpha.10")
    assert newest("Pyodide", versions, "0.29.0") == News(topic="Pyodide", what="314.0.1")
    assert newest("Pyodide", [], "0.29.0") is None


def test_what_is_pinned_has_to_be_a_version() -> None:
    with pytest.raises(ValueError, match="Invalid version"):
        newest("Triton", TAGS, "main")
