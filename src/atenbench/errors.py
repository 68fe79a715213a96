"""The one exception that a user of the pipeline is meant to read."""


class UserError(Exception):
    """A fault that the user can mend; its text names the file, key or operator and says how.

    The rule scripts print it without a traceback; anything else that escapes is a fault of ours
    and keeps its traceback.
    """
