"""What nobody needs any more: which trims are due, and the thread that asks for them."""
