"""The bulk work on Spark: data sources and jobs over many stores.

The only room that imports pyspark. What the jobs do is what the commands do on one machine, by the same
functions, cut by store and by segment.
"""
