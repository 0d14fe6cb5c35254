"""What a run is held against: onnxruntime or StableHLO's interpreter, and the comparison."""
