"""Independent work spread over processes, or over a cluster by the name of a joblib backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import joblib  # pyright: ignore[reportMissingTypeStubs]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["spread"]

T = TypeVar("T")


def spread(function: Callable[..., T], calls: Iterable[tuple[Any, ...]], *, jobs: int) -> Iterator[tuple[int, T]]:
    """Call ``function`` with each tuple of arguments, so many at a time; yield each result when it is there.

    With it comes the place of its arguments: results come in the order in which they are done.

    ``joblib.parallel_config(backend=...)`` around the loop decides where; processes of this machine by default.
    """
    parallel: Any = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
    task: Any = cast("Any", joblib).delayed(_numbered)
    yield from parallel(task(function, place, call) for place, call in enumerate(calls))


def _numbered(function: Callable[..., T], place: int, call: tuple[Any, ...]) -> tuple[int, T]:
    return place, function(*call)
