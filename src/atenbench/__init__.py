"""Curates traces of real PyTorch models into a benchmark of operator problems."""
