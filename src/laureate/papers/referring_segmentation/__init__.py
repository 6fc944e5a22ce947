"""Language-conditional filters on the way down and on the way up of a segmentation network."""
