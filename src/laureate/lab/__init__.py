"""Plan -> cells -> executor -> store -> verdict. The lab knows claims as data and no method by name."""
