"""Curates traces of real PyTorch models into a benchmark of operator problems."""

import os

# Arrow takes its pool when it is first imported. Its own allocator keeps 60 to 80 MB that were
# freed, which is a fifth of what curation needs.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
