"""Passes in folders, a conversion with its lowerings; `pipeline.pipelines` has their order."""
