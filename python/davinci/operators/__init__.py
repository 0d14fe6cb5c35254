"""The operator records: one description per ascend operator, read by everything that needs it.

Importing this package defines all of them, for it imports all of its modules. A module holds the
operators of a family, so a new operator is a new module, or a function in one.
"""

import importlib
import pkgutil

from davinci.operators.call import Call
from davinci.operators.core import OPERATORS, Operator
from davinci.operators.tensors import Tensor
from davinci.operators.vector_program import Value, VectorProgram

for _module in pkgutil.iter_modules(__path__):
    if _module.name == "reference":  # the page, made from what the others define
        continue
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["OPERATORS", "Call", "Operator", "Tensor", "Value", "VectorProgram"]
