"""Quantisation: QnnCanonicalizeOps, FakeQuantizationToInteger, Legalize, and the rules that users register."""
