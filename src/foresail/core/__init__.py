"""The vocabulary: words, events, commands, plan and reason, view and fold. Standard library and msgspec alone."""
