"""The operator records: one description per ascend operator, read by everything that needs it.

Importing this package defines all of them: each module beside `core` and what it uses registers
the operators of its family, so a new operator is a new module, or a function in one.
"""

import importlib
import pkgutil

from davinci.operators.core import OPERATORS, Elementwise, Operator, Tensor
from davinci.operators.vector_program import Value, VectorProgram

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["OPERATORS", "Elementwise", "Operator", "Tensor", "Value", "VectorProgram"]
