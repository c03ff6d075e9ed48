"""Bring your own codegen: composites, regions, partitioning; one file for each accelerator's pattern table."""
from relaylang.partition.composite import Entry, Refusals, composite_name, merge_composites
from relaylang.partition.partition import partition_graph, regions_of
from relaylang.partition.regions import Region, form_regions

__all__ = [
    "Entry", "Refusals", "Region", "composite_name", "form_regions", "merge_composites",
    "partition_graph", "regions_of",
]  # fmt: skip
