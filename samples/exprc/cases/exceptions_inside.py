"""Exceptions thrown and caught inside the archive: an object built without wasm exceptions links, and fails here."""

import exprc

EXPECTED = {
    "throw": "unwound at 7",
    "rethrow": "rethrown unwound",
    "nested": "from 42",
    "destructor": "1 destroyed",
    "standard": "out of range",
}
assert {kind: exprc.self_test(kind) for kind in EXPECTED} == EXPECTED
for _ in range(10_000):
    exprc.self_test("destructor")
