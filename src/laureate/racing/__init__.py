"""Races: which of an area's methods is best on a problem of one's own; what ``laureate race`` and ``laureate.race`` do.

A *discipline* (``disciplines/``) is data: what a problem must offer, who enters with which settings, what is measured.
Its *track* (``tracks/``) computes, in the lab's workers. ``running`` plans and collects, ``standing`` judges.
"""
