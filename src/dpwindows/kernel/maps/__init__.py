"""Integer maps: the matrices that exact answers are multiplied by before noise is added."""
