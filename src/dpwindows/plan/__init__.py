"""From what is asked to measurements with noise scales and the error of every number, before any data is seen."""
