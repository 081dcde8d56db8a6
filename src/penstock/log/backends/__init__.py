"""Where the log lives: in a folder of this machine, or in JetStream."""
