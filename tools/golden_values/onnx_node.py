"""One operator as the onnx package's reference implementation computes it, in float64. Only families that ONNX defines need the package."""
import numpy
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator


def run(op, inputs, outputs=1, **attributes):
    """Results of a node; inputs are arrays, or None for those that are not given."""
    names = ['' if x is None else f'i{i}' for i, x in enumerate(inputs)]
    results = [f'o{i}' for i in range(outputs)]
    node = helper.make_node(op, names, results, **attributes)
    declared = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in zip(names, inputs) if n]
    graph = helper.make_graph([node], 'g', declared, [helper.make_empty_tensor_value_info(n) for n in results])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', onnx.defs.onnx_opset_version())])
    found = ReferenceEvaluator(model).run(results, {n: x for n, x in zip(names, inputs) if n})
    return found[0] if outputs == 1 else found


def nhwc(array):
    return numpy.moveaxis(array, 1, -1)
