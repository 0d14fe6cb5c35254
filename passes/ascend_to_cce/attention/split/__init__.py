"""Attention whose products a cube core computes and whose softmax its vector cores."""
