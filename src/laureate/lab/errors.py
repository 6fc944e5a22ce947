"""Errors that a user can mend: printed as one line with the remedy, never with a traceback."""

__all__ = ["UserError"]


class UserError(Exception):
    """What is wrong and what to do about it, in words for the person at the keyboard."""

    def __init__(self, message: str, remedy: str = ""):
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()

    def __reduce__(self) -> tuple[type["UserError"], tuple[str, str]]:
        # Workers send it back to the parent; the default would lose the remedy.
        return UserError, (self.message, self.remedy)
