"""`penstock bench commit`: what a batch saves when its commit follows behind it."""
