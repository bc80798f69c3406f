#include "tests/onnx/fuzz.hpp"

namespace cermet::onnx::test {
namespace {

using P = ::onnx::TensorProto;
using Attributes = std::vector<AttributeProto>;

AttributeProto number(const std::string& name, std::int64_t value) { return attribute(name, value); }
AttributeProto list(const std::string& name, const std::vector<std::int64_t>& values) {
  return attribute(name, values);
}

/// f32 elements 0, 1/8, 2/8, ..
P weights(const std::string& name, const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 16) / 8;
  return tensor(name, dims, values);
}

P integer(const std::string& name, std::int64_t value) { return tensor<std::int64_t>(name, {}, {value}); }

/// One operator on x and initializers.
::onnx::ModelProto single(const std::string& op, const Sizes& x, const std::vector<P>& operands,
                          const Attributes& attributes = {}, int results = 1, Code code = P::FLOAT) {
  ::onnx::GraphProto graph;
  Names inputs;
  if (!x.empty()) {
    input(graph, "x", code, x);
    inputs.push_back("x");
  }
  for (const P& operand : operands) {
    inputs.push_back(operand.name());
    if (!operand.name().empty()) *graph.add_initializer() = operand;
  }
  Names outputs;
  for (int i = 0; i < results; ++i) outputs.push_back("y" + std::to_string(i));
  node(graph, op, inputs, outputs, attributes);
  for (const std::string& name : outputs) output(graph, name);
  return model_of(graph, 18);
}

::onnx::ModelProto vision() {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {"batch", 3, 8, 8});
  *graph.add_initializer() = weights("w", {4, 3, 3, 3});
  for (const char* name : {"scale", "bias", "mean", "variance"}) *graph.add_initializer() = weights(name, {4});
  *graph.add_initializer() = weights("fc", {4, 5});
  node(graph, "Conv", {"x", "w"}, {"c"},
       {list("pads", {1, 1, 1, 1}), list("strides", {2, 2}), list("dilations", {1, 1}), number("group", 1)});
  node(graph, "BatchNormalization", {"c", "scale", "bias", "mean", "variance"}, {"n"});
  node(graph, "Relu", {"n"}, {"r"});
  node(graph, "MaxPool", {"r"}, {"p"}, {list("kernel_shape", {2, 2}), list("strides", {2, 2}), number("ceil_mode", 1)});
  node(graph, "GlobalAveragePool", {"p"}, {"g"});
  node(graph, "Flatten", {"g"}, {"f"}, {number("axis", 1)});
  node(graph, "Gemm", {"f", "fc"}, {"l"}, {number("transB", 0)});
  node(graph, "Softmax", {"l"}, {"y"}, {number("axis", -1)});
  output(graph, "y");
  return model_of(graph);
}

::onnx::ModelProto shapes() {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {"batch", "sequence", 8});
  *graph.add_initializer() = ints("zero", {0});
  *graph.add_initializer() = ints("one", {1});
  *graph.add_initializer() = ints("heads", {2, 4});
  *graph.add_initializer() = weights("w", {8, 8});
  node(graph, "Shape", {"x"}, {"shape"});
  node(graph, "Gather", {"shape", "zero"}, {"b"});
  node(graph, "Slice", {"shape", "one", "heads", "zero"}, {"unused"});
  node(graph, "Gather", {"shape", "one"}, {"s"});
  node(graph, "Concat", {"b", "s", "heads"}, {"split"}, {number("axis", 0)});
  node(graph, "MatMul", {"x", "w"}, {"q"});
  node(graph, "Reshape", {"q", "split"}, {"h"});
  node(graph, "Transpose", {"h"}, {"t"}, {list("perm", {0, 2, 1, 3})});
  node(graph, "Transpose", {"t"}, {"u"}, {list("perm", {0, 1, 3, 2})});
  node(graph, "MatMul", {"t", "u"}, {"scores"});
  node(graph, "Softmax", {"scores"}, {"p"}, {number("axis", 3)});
  node(graph, "ConstantOfShape", {"s"}, {"filled"}, {attribute("value", tensor<float>("", {1}, {1}))});
  node(graph, "Mul", {"p", "filled"}, {"y"});
  output(graph, "y");
  return model_of(graph);
}

::onnx::ModelProto control() {
  ::onnx::GraphProto body, taken, other, scan, graph;
  input(body, "i", P::INT64, {});
  input(body, "go", P::BOOL, {});
  input(body, "sum", P::FLOAT, {2});
  node(body, "Add", {"sum", "x"}, {"next"});
  node(body, "Identity", {"next"}, {"piece"});
  for (const char* name : {"go", "next", "piece"}) output(body, name);
  node(taken, "Neg", {"total"}, {"t"});
  output(taken, "t");
  node(other, "Abs", {"total"}, {"e"});
  output(other, "e");
  input(scan, "state", P::FLOAT, {2});
  input(scan, "row", P::FLOAT, {2});
  node(scan, "Add", {"state", "row"}, {"after"});
  node(scan, "Identity", {"after"}, {"kept"});
  output(scan, "after");
  output(scan, "kept");
  input(graph, "x", P::FLOAT, {2});
  *graph.add_initializer() = integer("trips", 3);
  *graph.add_initializer() = tensor<std::uint8_t>("yes", {}, {1}, P::BOOL);
  *graph.add_initializer() = weights("start", {2});
  node(graph, "Loop", {"trips", "yes", "start"}, {"total", "pieces"}, {attribute("body", body)});
  node(graph, "ReduceSum", {"x"}, {"s"}, {number("keepdims", 0)});
  node(graph, "Greater", {"s", "s"}, {"c"});
  node(graph, "If", {"c"}, {"b"}, {attribute("then_branch", taken), attribute("else_branch", other)});
  node(graph, "Scan", {"b", "pieces"}, {"last", "all"}, {attribute("body", scan), number("num_scan_inputs", 1)});
  node(graph, "F", {"last"}, {"y"}, {attribute("alpha", 0.5f)}).set_domain("my");
  output(graph, "y");
  output(graph, "all");
  ::onnx::ModelProto model = model_of(graph);
  auto& function = *model.add_functions();
  function.set_name("F");
  function.set_domain("my");
  function.add_input("a");
  function.add_output("b");
  auto& opset = *function.add_opset_import();
  opset.set_version(17);
  node(function, "LeakyRelu", {"a"}, {"h"}, {reference("alpha", AttributeProto::FLOAT)});
  node(function, "Relu", {"h"}, {"b"});
  return model;
}

}  // namespace

std::vector<::onnx::ModelProto> seed_models() {
  const P zero_u8 = tensor<std::uint8_t>("zero", {}, {3}), small_i8 = tensor<std::int8_t>("q", {2, 2}, {1, -2, 3, 4});
  return {
      vision(),
      shapes(),
      control(),
      single("Range", {}, {integer("start", 0), integer("limit", 9), integer("step", 2)}),
      single("Range", {},
             {tensor<float>("start", {}, {0}), tensor<float>("limit", {}, {1}), tensor<float>("step", {}, {0.25f})}),
      single("ConstantOfShape", {}, {ints("shape", {2, 3})}, {attribute("value", tensor<std::int64_t>("", {1}, {4}))}),
      single("Expand", {2, 1}, {ints("shape", {3, 1, 4})}),
      single("Expand", {}, {weights("w", {2, 1}), ints("shape", {2, 4})}),
      single("Tile", {2, 3}, {ints("repeats", {2, 1})}),
      single("Pad", {2, 3}, {ints("pads", {1, 0, 0, 1}), tensor<float>("value", {}, {5})},
             {attribute("mode", std::string("constant"))}),
      single("Pad", {4, 3}, {ints("pads", {1, 0, 0, 1})}, {attribute("mode", std::string("reflect"))}),
      single("Pad", {4, 3}, {ints("pads", {1, 0, 0, 1})}, {attribute("mode", std::string("wrap"))}),
      single("Resize", {1, 1, 4, 4}, {P(), weights("scales", {4}), ints("sizes", {1, 1, 8, 6})},
             {attribute("mode", std::string("linear"))}),
      single("Resize", {1, 1, 4, 4}, {P(), tensor<float>("scales", {4}, {1, 1, 2, 0.5f})},
             {attribute("mode", std::string("cubic"))}),
      single("OneHot", {}, {ints("at", {1, 0, -1}), integer("depth", 4), tensor<float>("values", {2}, {0, 1})},
             {number("axis", -1)}),
      single("Slice", {4, 5},
             {ints("starts", {1, -1}), ints("ends", {3, -4}), ints("axes", {0, 1}), ints("steps", {1, -2})}),
      single("Split", {6, 2}, {ints("sizes", {1, 5})}, {number("axis", 0)}, 2),
      single("TopK", {2, 5}, {ints("k", {2})}, {number("axis", 1)}, 2),
      single("Einsum", {2, 3}, {weights("w", {3, 4})}, {attribute("equation", std::string("ij,jk->ik"))}),
      single("Gather", {4, 3}, {tensor<std::int64_t>("at", {2}, {3, -1})}, {number("axis", 0)}),
      single("GatherElements", {2, 2}, {tensor<std::int64_t>("at", {2, 2}, {0, 1, 1, 0})}, {number("axis", 1)}),
      single("GatherND", {2, 3}, {tensor<std::int64_t>("at", {2, 2}, {0, 1, 1, 2})}, {number("batch_dims", 0)}),
      single("ScatterND", {4}, {tensor<std::int64_t>("at", {2, 1}, {1, 3}), weights("updates", {2})}),
      single("ScatterElements", {2, 3}, {tensor<std::int64_t>("at", {1, 3}, {1, 0, 1}), weights("updates", {1, 3})},
             {number("axis", 0)}),
      single("CumSum", {2, 3}, {integer("axis", 1)}, {number("exclusive", 1)}),
      single("Trilu", {3, 3}, {integer("k", 1)}, {number("upper", 1)}),
      single("NonZero", {2, 3}, {}),
      single("Compress", {3, 2}, {tensor<std::uint8_t>("c", {3}, {1, 0, 1}, P::BOOL)}, {number("axis", 0)}),
      single("ConvTranspose", {1, 2, 3, 3}, {weights("w", {2, 3, 2, 2})},
             {list("strides", {2, 2}), list("output_padding", {1, 1}), list("pads", {0, 1, 0, 1}), number("group", 1)}),
      single("AveragePool", {1, 1, 5, 5}, {},
             {list("kernel_shape", {3, 3}), list("pads", {1, 1, 1, 1}), number("count_include_pad", 1)}),
      single("Conv", {1, 1, 6}, {weights("w", {2, 1, 3})},
             {attribute("auto_pad", std::string("SAME_UPPER")), list("kernel_shape", {3})}),
      single("LayerNormalization", {2, 4}, {weights("scale", {4}), weights("bias", {4})}, {number("axis", -1)}),
      single("ReduceMean", {2, 3, 4}, {ints("axes", {1, -1})}, {number("keepdims", 0)}),
      single("ReduceLogSumExp", {2, 3}, {ints("axes", {1})}),
      single("ArgMax", {2, 3}, {}, {number("axis", 1), number("select_last_index", 1)}),
      single("Squeeze", {1, 3, 1}, {ints("axes", {0, 2})}),
      single("Unsqueeze", {3}, {ints("axes", {0, 2})}),
      single("Cast", {3}, {}, {number("to", 7)}),
      single("Clip", {3}, {tensor<float>("low", {}, {0}), tensor<float>("high", {}, {1})}),
      single("QuantizeLinear", {2, 2}, {tensor<float>("scale", {}, {0.5f}), zero_u8}, {number("axis", 1)}),
      single("DequantizeLinear", {}, {small_i8, tensor<float>("scale", {2}, {0.5f, 0.25f})}, {number("axis", 1)}),
      single("DynamicQuantizeLinear", {2, 3}, {}, {}, 3),
      single("MatMulInteger", {}, {tensor<std::uint8_t>("a", {2, 2}, {1, 2, 3, 4}), small_i8, zero_u8}),
      single("STFT", {1, 8, 1}, {integer("step", 2), weights("window", {4}), integer("length", 4)},
             {number("onesided", 1)}),
      single("HannWindow", {}, {integer("size", 5)}, {number("periodic", 1)}),
      single("MelWeightMatrix", {},
             {integer("bins", 3), integer("length", 16), integer("rate", 8000), tensor<float>("low", {}, {0}),
              tensor<float>("high", {}, {4000})}),
      single("TfIdfVectorizer", {4}, {},
             {list("ngram_counts", {0, 2}), list("ngram_indexes", {0, 1, 2}), list("pool_int64s", {1, 2, 3, 4}),
              number("max_gram_length", 2), number("max_skip_count", 1), number("min_gram_length", 1),
              attribute("mode", std::string("TF"))},
             1, P::INT64),
      single("ReverseSequence", {3, 2}, {tensor<std::int64_t>("lengths", {2}, {1, 3})},
             {number("time_axis", 0), number("batch_axis", 1)}),
      single("Div", {3}, {tensor<std::int64_t>("d", {3}, {1, 2, 3})}, {}, 1, P::INT64),
  };
}

}  // namespace cermet::onnx::test
