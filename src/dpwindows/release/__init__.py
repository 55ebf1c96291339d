"""The published object, the files it is kept in, and how it is made once."""
