"""The protocol `transaction`: its task, and its coordinator with book and stream of steps."""
