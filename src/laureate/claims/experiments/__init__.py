"""Experiments of papers that make many claims, a module a group; data only, as the claim files that gather them."""
