"""A problem that is light to load, for a race of which nothing is computed."""


class Widget:
    """It may say more of itself."""

    def __init__(self, **more):
        self.length, self.more = 3, more

    def __call__(self):
        return 1


def facts(problem):
    """What all entrants share."""
    return {"length": problem.length, "code": {"domain": "Binary()"}} | problem.more


def trial(key, arm, problem, scale):
    raise NotImplementedError("nothing is computed here")
