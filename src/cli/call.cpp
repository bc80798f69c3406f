// cermet call: one operator on tensors from files.
#include <algorithm>

#include "api/schema.hpp"
#include "base/text.hpp"
#include "cli/bench/bench_call.hpp"
#include "cli/model_files.hpp"
#include "cli/model_options.hpp"
#include "cli/op_call.hpp"
#include "cli/verb.hpp"
#include "io/npy.hpp"
#include "io/output_target.hpp"
#include "op/schema/operator.hpp"
#include "select/bound_op.hpp"

namespace cermet::cli::call_verb {
namespace {

struct Options {
  std::string op, constants, kernel, config, device = "cpu";
  std::vector<std::string> inputs, attributes, outputs;
  int threads = 0;
};

using Operands = std::vector<std::optional<OwnedTensor>>;

/// FILE.npy, or FILE.npy:bf16 for bytes that NumPy has another name for.
OwnedTensor read_operand(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const auto named = colon == std::string::npos ? std::nullopt : dtype_from_name(text.substr(colon + 1));
  OwnedTensor tensor = read_npy(named ? text.substr(0, colon) : text, named);
  if (!named) return tensor;
  require(size_of(*named) == size_of(tensor.view.dtype), "{}: expected elements of {} bytes for {}, found {}",
          text.substr(0, colon), size_of(*named), name_of(*named), name_of(tensor.view.dtype));
  tensor.view.dtype = *named;
  return tensor;
}

/// Operands by name ("x=x.npy") or in order; "-" is one that is not given.
Operands read_operands(const OpDefinition& op, const std::vector<std::string>& given) {
  Operands operands;
  std::size_t next = 0;
  for (const std::string& text : given) {
    const std::string name = text.substr(0, std::min(text.find('='), text.size()));
    const auto spec = std::ranges::find(op.inputs, name, &OperandSpec::name);
    const bool is_named = spec != op.inputs.end() && name.size() < text.size();
    std::size_t i = next;
    if (is_named) {
      i = static_cast<std::size_t>(spec - op.inputs.begin());
      if (spec->variadic) i = std::max(i, operands.size());
    }
    if (operands.size() <= i) operands.resize(i + 1);
    require(!operands[i], "--input {}: expected the operand once, found it twice", text);
    const std::string file = is_named ? text.substr(name.size() + 1) : text;
    if (file != "-") operands[i] = read_operand(file);
    next = std::max(next, i + 1);
  }
  return operands;
}

/// The call as `cermet explain op NAME --shape` takes it.
std::string call_text(const Operands& operands, const std::vector<std::string>& attributes) {
  std::string text;
  for (const auto& operand : operands) text += (operand ? operand->view.type().to_string() : "-") + " ";
  for (const std::string& attribute : attributes) {
    require(attribute.find('=') != std::string::npos && attribute[0] != '=', "--attr: expected NAME=VALUE, found {}",
            quote(attribute));
    text += attribute + " ";
  }
  return text;
}

/// A bound operator with its operands and results in host memory.
struct Run {
  Region region;
  std::vector<TensorView> inputs, outputs;
  std::vector<OwnedTensor> results;  ///< those that share no operand's memory

  Run(Region made, const Operands& operands) : region(std::move(made)) {
    for (std::size_t i = 0; i < region.operands.size(); ++i)
      inputs.push_back(i < operands.size() && operands[i] ? operands[i]->view : TensorView());
    for (std::size_t o = 0; o < region.results.size(); ++o) {
      if (const auto shared = shared_operand(region, o)) outputs.push_back(inputs[*shared]);
      else
        outputs.push_back(results.emplace_back(region.result_type(o).dtype, bind(region.result_type(o).dims, {})).view);
    }
  }

  void on_host(BoundOp& op) const {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (region.has(i) && region.is_constant(i)) op.prepack(i, inputs[i]);
    op.run(inputs, outputs);
  }
  void on_device(BoundOp& op, const Context& context) const {
    std::vector<DeviceBuffer> memory;
    const auto placed = [&](const TensorView& view) {
      const std::int64_t bytes = view.present ? dense_bytes(view.dtype, view.shape) : 0;
      memory.push_back(context.device().allocate(std::max<std::int64_t>(bytes, 1)));
      return view.present ? TensorView(memory.back().data(), view.dtype, view.shape) : view;
    };
    Stream& stream = *context.stream();
    std::vector<TensorView> in, out;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      in.push_back(placed(inputs[i]));
      if (inputs[i].present) stream.upload(in[i].data, inputs[i].data, dense_bytes(inputs[i].dtype, inputs[i].shape));
      if (region.has(i) && region.is_constant(i)) op.prepack(i, inputs[i]);
    }
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const auto shared = shared_operand(region, o);
      out.push_back(shared ? in[*shared] : placed(outputs[o]));
    }
    op.run(in, out, nullptr, &stream);
    for (std::size_t o = 0; o < outputs.size(); ++o)
      stream.download(outputs[o].data, out[o].data, dense_bytes(outputs[o].dtype, outputs[o].shape));
    stream.synchronize();
  }
};

void call(Console& console, const Options& options) {
  const OpDefinition& op = api::operator_named(options.op);
  const Operands operands = read_operands(op, options.inputs);
  Region region = parse_problem(op, call_text(operands, options.attributes), 1);
  mark_constants(region, options.constants);
  require(options.outputs.size() <= region.results.size(),
          "--output: expected at most {} files, one for each result, found {}", region.results.size(),
          options.outputs.size());
  for (const std::string& file : options.outputs) require_writable(file);
  Context context = bench_context(options.device, options.threads);
  region.set_target(context.target());
  Choice choice = choose_by_name(region, options.kernel, options.config, {.threads = context.pool().size()});
  Json json{{"problem", region.to_string()},
            {"kernel", choice.kernel->name},
            {"config", choice.config.to_string()},
            {"device", context.description()}};
  const Run run(region, operands);
  BoundOp bound(std::move(region), std::move(choice), context.pool(), context.queue());
  if (context.stream()) run.on_device(bound, context);
  else run.on_host(bound);
  Table table;
  table.row({"kernel", fmt::format("{}, {}", json["kernel"].get<std::string>(), json["config"].get<std::string>()),
             json["device"].get<std::string>()});
  json["outputs"] = Json::array();
  for (std::size_t o = 0; o < run.outputs.size(); ++o) {
    const TensorView& view = run.outputs[o];
    const std::string name = result_name(run.region, o), type = view.type().to_string();
    if (o < options.outputs.size()) write_npy(options.outputs[o], view);
    json["outputs"].push_back(
        {{"name", name}, {"type", type}, {"file", o < options.outputs.size() ? Json(options.outputs[o]) : Json()}});
    table.row({name, type, o < options.outputs.size() ? options.outputs[o] : first_elements(view)});
  }
  if (console.json()) console.write_json(json);
  else console.write(table.to_string());
}

}  // namespace

Verb verb() {
  return {"call", "compute one operator on tensors from .npy files",
          "cermet call matmul --input a.npy --input b.npy -o y.npy\n"
          "cermet call rms_norm --input x=x.npy --input weight=weight.npy --attr eps=1e-5 -o y.npy\n"
          "cermet call linear --input x.npy --input w.npy --kernel gemm.linear -o y.npy\n"
          "cermet call topk_gating --input logits.npy --attr k=8 -o weights.npy -o ids.npy --device cuda",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            parser.option("NAME <OPERATOR>", options->op, "an operator").required();
            parser.option("--input <[NAME=]FILE.npy>", options->inputs,
                          "an operand, in the schema's order or by name; - for one that is not given; FILE.npy:bf16 "
                          "reads elements of the same size as that type");
            parser.option("--attr <NAME=VALUE>", options->attributes, "an attribute");
            parser.option("-o,--output <FILE.npy>", options->outputs,
                          "file for a result, in the schema's order; without, its first elements are printed");
            parser.option("--constant <NAMES>", options->constants,
                          "operands known before the first run or none; by default those that a kernel would prepack");
            parser.option("--kernel <NAME>", options->kernel, "this kernel instead of the chosen one");
            parser.option("--config <FIELDS>", options->config,
                          "a configuration of the kernel: \"tile_m=128 tile_n=64\"");
            declare_device(parser, options->device, options->threads);
            return [options](Console& console) { call(console, *options); };
          }};
}

}  // namespace cermet::cli::call_verb
