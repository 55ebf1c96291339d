"""The text of the count: the query that every engine runs, and how it reads a source's columns. Nothing is run here."""
