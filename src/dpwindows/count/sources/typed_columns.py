"""The typed reading of data frames: what a value means is said by its own type, and never by another row.

A column of Arrow, of a database or of a file has one declared type. A pandas column of the type object has none: each
value brings its own, and libraries that make such a column an Arrow array settle on a type after looking at the values,
as a rule at the first one, and convert the others to it. A zone on one time then moves all times without one, one date
cuts all times to midnight, and one row changes what every other row means, by more than noise is drawn for.

**The rule.** All values of a column that are there have exactly the same Python type, and, if they are times, all of
them a zone or none of them, and, if they are NumPy's times, the same unit. None, NaN, NaT and NA are not there: null.
Which Arrow type such a column becomes is a function of that one type alone (`_READERS`). Anything else is refused,
with the first row that differs. True is no integer, and NumPy's int64 no Python integer.

**Why that suffices.** Let read(T, v) be what a value v becomes in a column whose type is T. The column of a log is
read as read(T, v) for each v, where T is the type of every v that is there. So T is that of v itself, and v becomes
read(type(v), v) in every log that holds it, unless the log is refused: the reading is a function of the row. Two logs
that differ in some rows are, once read, two logs that differ in what these rows become. QED.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpwindows.count.events import EventColumns, role_name
from dpwindows.count.query.dialect import SHOWN
from dpwindows.errors import InputError

Objects = NDArray[np.object_]
_PANDAS = (nw.Implementation.PANDAS, nw.Implementation.MODIN)
# Python's times and NumPy's, where these are whole microseconds or nanoseconds or coarser, without calendar units.
_TIME_UNITS = ("s", "ms", "us", "ns")
_DIGITS = 38


def typed_table(frame: nw.DataFrame[Any], columns: EventColumns) -> pa.Table:
    """The columns of a data frame that are read, as Arrow, each of one type that no value has a part in choosing.

    Raises:
        InputError: the values of a column are of several types, or of one that does not serve.
    """
    # A column with two roles is read for the first of them, where it is an item.
    roles = {name: role_name(role) for role, name in reversed(columns.roles)}
    names = list(dict.fromkeys(name for _, name in columns.roles))
    return pa.table({name: _typed(frame, roles[name], name) for name in names})


def _typed(frame: nw.DataFrame[Any], role: str, name: str) -> pa.Array | pa.ChunkedArray:
    series = frame.get_column(name)
    if frame.implementation in _PANDAS:
        column = series.to_pandas()
        if not _is_declared(column.dtype):
            values = np.asarray(column, dtype=object)
            return _typed_array(values, np.asarray(column.isna(), dtype=bool), role, name)
    elif series.dtype == nw.Object:
        values = np.empty(len(series), dtype=object)
        values[:] = series.to_list()
        missing = np.array([value is None or value != value for value in values], dtype=bool)
        return _typed_array(values, missing, role, name)
    return series.to_arrow()


def _is_declared(dtype: Any) -> bool:
    """Whether a pandas column of this type holds values of one type, known without looking at them.

    What is not known to do so is read value by value: the type object, sparse columns, and types of other packages.
    """
    if isinstance(dtype, np.dtype):
        return dtype != np.dtype(object)
    if type(dtype).__name__ == "CategoricalDtype":
        return _is_declared(dtype.categories.dtype)
    return type(dtype).__module__.split(".")[0] == "pandas" and type(dtype).__name__ != "SparseDtype"


def _typed_array(values: Objects, missing: NDArray[np.bool_], role: str, name: str) -> pa.Array | pa.ChunkedArray:
    """Python values as Arrow, of the type that their one exact type says."""
    present = values[~missing]
    if not len(present):
        return pa.nulls(len(values))
    # Values of one type may be of different sorts all the same, such as times with a zone and without.
    with_sorts = present if isinstance(present[0], dt.datetime | dt.time | np.datetime64) else present[:1]
    if len(set(map(type, present))) > 1 or len(set(map(_sort, with_sorts))) > 1:
        raise _mixed(values, missing, role, name)
    reader = next((_READERS[base] for base in type(present[0]).__mro__ if base in _READERS), None)
    if reader is None:
        raise InputError(
            f"the {role} column {name!r} holds values of the Python type {type(present[0]).__name__}; write it as "
            f"text, whole numbers or times, or make the part that counts a column of its own"
        )
    held = values.copy()
    held[missing] = None
    if role == "item":
        _require_microseconds(held, missing, name)
    try:
        return reader(held)
    except (ArithmeticError, TypeError, ValueError, pa.ArrowException):
        raise _beyond(reader, values, missing, role, name) from None


def _sort(value: object) -> str:
    """What all values of a column must have in common: the type, the awareness of a zone, NumPy's unit."""
    name = type(value).__name__
    if isinstance(value, dt.datetime | dt.time):
        # Not only tzinfo: there are zones that know no offset.
        return f"{name} {'without' if value.utcoffset() is None else 'with'} a zone"
    if isinstance(value, np.datetime64):
        unit, multiple = np.datetime_data(value)
        return f"{name} in units of {multiple} {unit}"
    return name


def _mixed(values: Objects, missing: NDArray[np.bool_], role: str, name: str) -> InputError:
    rows = np.flatnonzero(~missing)
    first = _sort(values[rows[0]]), type(values[rows[0]])
    row = next(row for row in rows if (_sort(values[row]), type(values[row])) != first)
    other = _sort(values[row])
    other = f"another type called {other}" if other == first[0] else other
    return InputError(
        f"the {role} column {name!r} holds {other} in row {row} and {first[0]} in row {rows[0]} (counted from 0), "
        f"which are {_shown(values[row])} and {_shown(values[rows[0]])}; one row must not say what the others mean, so "
        f"give each column one type{_MENDS[role]}"
    )


def _beyond(
    reader: Callable[[Objects], pa.Array], values: Objects, missing: NDArray[np.bool_], role: str, name: str
) -> InputError:
    """The error for values of the right type that Arrow has no place for."""

    def fits(row: int) -> bool:
        try:
            reader(values[row : row + 1])
        except (ArithmeticError, TypeError, ValueError, pa.ArrowException):
            return False
        return True

    row = next((row for row in np.flatnonzero(~missing).tolist() if not fits(row)), 0)
    return InputError(
        f"the {role} column {name!r} holds a value in row {row} (counted from 0), of type {_sort(values[row])}, that "
        f"cannot be read, {_shown(values[row])}: integers must fit into 64 bits, decimals be whole numbers of at "
        f"most {_DIGITS} digits, text be Unicode and times have units between seconds and nanoseconds"
    )


def _shown(value: object) -> str:
    """A value as messages repeat it."""
    try:
        return repr(value)[:SHOWN]
    except Exception:  # of any type that a frame may hold; and Python writes out no number of thousands of digits
        return "a value"


def _require_microseconds(held: Objects, missing: NDArray[np.bool_], name: str) -> None:
    """Refuse items that are pandas' times with nanoseconds, which are cut: two could become one."""
    for row in np.flatnonzero(~missing):
        if not isinstance(held[row], dt.datetime):
            return
        if getattr(held[row], "nanosecond", 0):
            raise InputError(
                f"the item column {name!r} holds a time with nanoseconds in row {row} (counted from 0), and these "
                f"would be cut; give the column the type datetime64[ns], or write it as text"
            )


_MENDS = {
    "item": ", for example with .astype(str)",
    "group": ", for example with .astype(str)",
    "time": ", for example with pandas.to_datetime(..., utc=True) if all of its times are instants",
    "count": ', for example with .astype("Int64")',
}


# --- one type, one reader: a function of the type alone, and of one value at a time -----------------------------------


def _of(type_: pa.DataType) -> Callable[[Objects], pa.Array]:
    return lambda held: pa.array(held, type_)


def _float(held: Objects) -> pa.Array:
    return pa.array([None if value is None else float(value) for value in held], pa.float64())


def _decimal(held: Objects) -> pa.Array:
    return pa.array([None if value is None else _whole(value) for value in held], pa.decimal128(_DIGITS, 0))


def _whole(value: Decimal) -> Decimal:
    """A whole number written as one, whatever its exponent was."""
    # Looked at first: an exponent may stand for more digits than memory holds.
    if not value.is_finite() or value.adjusted() >= _DIGITS or value != value.to_integral_value():
        raise ValueError("no whole number of few digits")
    return Decimal(int(value))


def _datetime(held: Objects) -> pa.Array:
    aware = next(value for value in held if value is not None).utcoffset() is not None
    return pa.array(held, pa.timestamp("us", "UTC" if aware else None))


def _time(held: Objects) -> pa.Array:
    if any(value is not None and value.utcoffset() is not None for value in held):
        raise ValueError("a time of day with a zone is no instant")
    return pa.array(held, pa.time64("us"))


def _uuid(held: Objects) -> pa.Array:
    bytes_ = pa.array([None if value is None else value.bytes for value in held], pa.binary(16))
    return pa.ExtensionArray.from_storage(pa.uuid(), bytes_)


def _numpy_time(held: Objects) -> pa.Array:
    unit, multiple = np.datetime_data(next(value for value in held if value is not None))
    if multiple != 1 or unit not in (*_TIME_UNITS, "D"):
        raise ValueError("a unit without a counterpart")
    return pa.array(np.array(held, dtype=f"datetime64[{unit}]"))


def _no_reader(held: Objects) -> pa.Array:
    raise TypeError("NumPy takes a span of time for an integer")


_READERS: dict[type, Callable[[Objects], pa.Array | pa.ChunkedArray]] = {
    str: _of(pa.large_string()),
    bytes: _of(pa.large_binary()),
    bool: _of(pa.bool_()),
    np.bool_: _of(pa.bool_()),
    int: _of(pa.int64()),
    np.integer: _of(pa.int64()),
    np.timedelta64: _no_reader,
    float: _float,
    np.floating: _float,
    Decimal: _decimal,
    dt.datetime: _datetime,
    dt.date: _of(pa.date32()),
    dt.time: _time,
    np.datetime64: _numpy_time,
    uuid.UUID: _uuid,
}
"""For a type of Python, the reader of columns of it and of types made from it, the nearest one first."""
