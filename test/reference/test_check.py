"""Comparison with a reference: what passes, what fails, and by how much."""

from __future__ import annotations

import numpy as np
import pytest

from davinci.errors import CheckFailed
from davinci.reference import check


def errors_of(found: object, wanted: object) -> dict[str, float]:
    return check.compare({"y": np.asarray(found)}, {"y": np.asarray(wanted)})


def test_equal() -> None:
    assert errors_of([1.0, 2.0], [1.0, 2.0]) == pytest.approx(
        {"max_abs_err": 0.0, "max_rel_err": 0.0, "cosine": 1.0}
    )


def test_errors_are_relative_to_the_largest_value() -> None:
    errors = errors_of([1.0, 0.1], [1.0, 0.0])
    assert errors["max_abs_err"] == errors["max_rel_err"] == pytest.approx(0.1)
    assert errors["cosine"] == pytest.approx(1 / np.sqrt(1.01))


def test_wrong_scale_fails_although_the_angle_is_right() -> None:
    errors = errors_of([2.0, 4.0], [1.0, 2.0])
    assert errors["cosine"] == pytest.approx(1.0)
    with pytest.raises(CheckFailed, match="differ from the reference"):
        check.require(errors, "mixed")


def test_wrong_angle_fails() -> None:
    with pytest.raises(CheckFailed):
        check.require({"cosine": 0.998, "max_rel_err": 0.0}, "mixed")


@pytest.mark.parametrize("found", [[1.0, np.nan], [1.0, np.inf]])
def test_not_finite(found: list[float]) -> None:
    with pytest.raises(CheckFailed, match="1 of 2"):
        errors_of(found, [1.0, 2.0])


def test_infinity_where_the_reference_has_it() -> None:
    assert errors_of([1.0, np.inf], [1.0, np.inf])["cosine"] == 1.0


def test_integers_must_be_equal() -> None:
    assert errors_of([1, 2], [1, 2])["cosine"] == 1.0
    with pytest.raises(CheckFailed, match="1 of 2"):
        errors_of([1, 2], [1, 3])


def test_all_zero_reference() -> None:
    assert errors_of([0.0], [0.0])["cosine"] == 1.0
    assert errors_of([0.5], [0.0])["cosine"] == 0.0


def test_empty_output() -> None:
    assert errors_of(np.zeros((0, 3)), np.zeros((0, 3)))["cosine"] == 1.0


def test_shapes() -> None:
    with pytest.raises(CheckFailed, match="shapes differ"):
        errors_of([1.0], [[1.0]])
