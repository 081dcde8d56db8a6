"""Estimators of a batch's time from cut to visible, all fed the same batches."""
