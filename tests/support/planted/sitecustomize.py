"""Plants a defect in every process of a test run that has this folder in PYTHONPATH: executes the code that
the variable PLANTED_DEFECT holds before anything else of the process. For `test_planted_defects` alone."""

import os

exec(os.environ["PLANTED_DEFECT"], {"__name__": "planted"})
