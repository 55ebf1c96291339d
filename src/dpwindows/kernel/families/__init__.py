"""Families of measurements: the shape, maps, bounds, proofs and rules of each in a file of its own.

All are imported with any of them: a certificate is the smallest bound of all rules that apply.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
