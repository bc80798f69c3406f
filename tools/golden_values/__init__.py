"""Golden values of every operator, one module for each family; tools/make_golden_values.py writes their files."""
