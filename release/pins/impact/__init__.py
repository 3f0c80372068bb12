"""What another Triton means for a pin set, read from two trees before anything is built.

>>> report = impact(read_facts(old), read_facts(new), pins)
>>> report.verdict, report.minutes
"""

from release.pins.impact.compare import Impact, Line, Severity, impact
from release.pins.impact.facts import TreeFacts, read_facts

__all__ = ["Impact", "Line", "Severity", "TreeFacts", "impact", "read_facts"]
