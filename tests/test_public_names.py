"""`import dpwindows as dw`: what completion shows before anything of it was used."""

from __future__ import annotations

import subprocess
import sys


def test_public_names_are_listed_before_they_are_imported() -> None:
    code = (
        "import sys, dpwindows; assert set(dpwindows.__all__) <= set(dir(dpwindows)); assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
