"""Policies of planning, one file each: the paper's two, one device for all, and ours."""
