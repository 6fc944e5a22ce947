"""GVP: Jing et al. (ICLR 2021)."""
