"""Cases by family; what a case is, is in case.py."""

from . import attention, norms, products, quantized, tables


def all_cases():
    return [(name, case) for name, family in (("attention", attention), ("norms", norms), ("products", products), ("quantized", quantized), ("tables", tables))
            for case in family.cases()]
