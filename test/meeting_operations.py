"""Meetings of blocks that break a constraint, and words of the error."""

from __future__ import annotations

from legal_operations import memref, ub

MEETINGS_THAT_ARE_NONE = [
    ("sync_cores", [ub("4x8", "i32"), "i32", ub("5x8", "i32")], "", "lines is in the wrong memory"),
    ("sync_cores", [memref("4x8", "i32"), "i32", memref("5x8", "i32")], "", "scratch is in"),
    ("sync_cores", [memref("4x8", "f32"), "i32", ub("5x8", "i32")], "", "expected s32 [blocks, 8]"),
    ("sync_cores", [memref("4x9", "i32"), "i32", ub("5x8", "i32")], "", "expected s32 [blocks, 8]"),
    ("sync_cores", [memref("4x8", "i32"), "i32", ub("4x8", "i32")], "", "those seen"),
    ("sync_cores", [memref("4x8", "i32"), "i64", ub("5x8", "i32")], "", "type of number"),
    *(
        ("sync_cores", [memref("4x8", "i32"), "i32", ub("4x8", "i32")], attributes, message)
        for attributes, message in (
            ("own = 1.0", "attribute own"),
            ("seen = array<i64: 2, 3>", "lines seen; found 3 from 2 on; expected 1..4 lines"),
            ("seen = array<i64: 1, 0>", "lines seen; found 0"),
            ("early = array<i64: 0, 1>", "early line; found 0; expected less than own, 0"),
            ("own = 1, early = array<i64: 0, 0>", "early counter; found ahead by 0"),
            ("seen = array<i64: 0, 2>", "lines of scratch; found 4; expected 3"),
            ("own = 1, early = array<i64: 0, 1>, seen = array<i64: 0, 3>", "expected 5, those"),
            ("group = 3", "group; found 3; expected a divisor of 4 lines"),
            ("group = 2", "lines of scratch; found 4; expected 3"),
            ("group = 2, seen = array<i64: 0, 2>", "lines of a group; found seen"),
        )
    ),
    *(
        ("sync_and_copy", [memref(lines, "i32"), number, ub("5x8", "i32"), *copied], "", message)
        for lines, number, copied, message in (
            ("3x8", "i32", [memref("64", "f32"), ub("64")], "those seen"),
            ("4x8", "i64", [memref("64", "f32"), ub("64")], "type of number"),
            ("4x8", "i32", [ub("64"), ub("64")], "source is in the wrong memory"),
            ("4x8", "i32", [memref("64", "f32"), ub("72")], "shapes differ"),
        )
    ),
]
