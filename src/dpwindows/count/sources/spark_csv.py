"""CSV files in Spark, read by the rules of `csv_files` or refused.

Spark's own reader of CSV takes what is malformed for something else: bytes that are not UTF-8 all become one
character, so that different items become one, and quotes in the middle of a field are kept, dropped or paired up
depending on its settings. Here Spark reads lines, which it does byte by byte, and one regular expression cuts a line
into fields. What the fields and delimiters do not make up again to the last byte is refused.

A field with the line end of its file in it is refused too: the first of its lines ends within quotes, where no field
ends. That leaves files that are distributed by their lines, however long they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from dpwindows.count.events import EventColumns
from dpwindows.count.query.dialect import quote_text
from dpwindows.count.sources.csv_files import CsvHeader, parse_header
from dpwindows.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MARK = "dpwindows cannot read a line of CSV"


def csv_frame(session: SparkSession, files: Mapping[CsvHeader, Sequence[str]], columns: EventColumns) -> DataFrame:
    """Our columns, as text, of files grouped by their header; each is given as Spark names it."""
    frames = [_frame(_lines(session, paths, header.line_end), header, columns) for header, paths in files.items()]
    return reduce(lambda one, other: one.union(other), frames)


def first_line_header(session: SparkSession, address: str, columns: EventColumns) -> CsvHeader:
    """The header of the first file at an address that Spark reads. Raises `InputError` as `parse_header` does."""
    first = _lines(session, [address]).where("_metadata.file_block_start = 0").select("value").first()
    return parse_header("" if first is None else first[0], columns, address)


def malformed(message: str) -> InputError | None:
    """The error for a line that is no CSV, if this is what Spark's message is about."""
    if _MARK not in message:
        return None
    return InputError(
        "a CSV file is malformed: it must be UTF-8, with the same number of fields in every line, and fields with "
        "delimiters in double quotes; a field with a line end in it, which the engine duckdb reads, Spark does not"
    )


def _lines(session: SparkSession, paths: Sequence[str], line_end: str = "\n") -> DataFrame:
    """The lines of files, as bytes that are perhaps no text, with the names of folders left alone."""
    return session.read.text(list(paths), lineSep=line_end, recursiveFileLookup=True)


def _frame(lines: DataFrame, header: CsvHeader, columns: EventColumns) -> DataFrame:
    """Our columns of files with one header."""
    failure = f"CAST(raise_error(concat('{_MARK}', left(line, 0))) AS ARRAY<STRING>)"
    checked = _with(fields_of(lines, header), f"CASE WHEN complete THEN fields ELSE {failure} END", "checked")
    names = list(dict.fromkeys(name for _, name in columns.roles))
    fields = [f"checked[{header.names.index(name)}]" for name in names]
    values = checked.selectExpr(*(f"{field_value(field)} AS c{place}" for place, field in enumerate(fields)))
    return _without_header(values, names)


def fields_of(lines: DataFrame, header: CsvHeader) -> DataFrame:
    """Each line with its fields as they are written, and whether these are all of it and as many as there should be."""
    delimiter = quote_text(header.delimiter)
    whole = lines.selectExpr("value AS line").where("line <> ''")
    cut = f"regexp_extract_all(concat(line, {delimiter}), r'{_field_pattern(header.delimiter)}', 1)"
    complete = f"size(fields) = {len(header.names)} AND array_join(fields, {delimiter}) = line AND is_valid_utf8(line)"
    return _with(whole, cut, "fields").selectExpr("*", f"{complete} AS complete")


def field_value(field: str) -> str:
    """What a field that is written so stands for, as an expression."""
    quoted = f"""replace(substr({field}, 2, length({field}) - 2), '""', '"')"""
    return f"CASE WHEN {field} = '' THEN NULL WHEN startswith({field}, '\"') THEN {quoted} ELSE {field} END"


def _field_pattern(delimiter: str) -> str:
    """One field and the delimiter after it, where the one before has ended; the quantifiers never go back."""
    mark = rf"\x{ord(delimiter):02x}"
    return rf'\G("[^"]*+(?:""[^"]*+)*+"|[^"\r\n{mark}]*+){mark}'


def _with(frame: DataFrame, expression: str, name: str) -> DataFrame:
    """A frame with one column more, by a generator: the one expression that Spark neither repeats nor moves."""
    return frame.selectExpr("*", f"explode(array({expression})) AS {name}")


def _without_header(values: DataFrame, names: Sequence[str]) -> DataFrame:
    """Under these names, and without lines that hold them."""
    from pyspark.sql.functions import col, lit

    pairs = zip(values.columns, names, strict=True)
    is_header = reduce(lambda one, other: one & other, (col(place) == lit(name) for place, name in pairs))
    return values.where(~is_header).toDF(*names)
