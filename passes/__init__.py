"""Passes, one a file, in folders by level, in pipeline order; see `davinci.passes.pipelines`."""
