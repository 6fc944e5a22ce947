"""From a declaration to numbers: plan, cells, workers, and what a run costs."""
