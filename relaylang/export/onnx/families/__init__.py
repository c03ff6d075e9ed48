"""The rules of ONNX's export, one file for each family of operators."""
