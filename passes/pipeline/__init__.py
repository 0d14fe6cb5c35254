"""What passes are made of and how pipelines of them run: registry, text, runner, named ones."""
