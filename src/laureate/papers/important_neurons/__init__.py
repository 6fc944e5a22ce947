"""Important neurons: units that independently trained models agree on, erased and set."""
