#include "model/decoder_choice.hpp"

namespace cermet {

void add_choice(Graph& graph, bool greedy, std::int64_t block_size, std::int64_t rows, std::int64_t columns) {
  const ValueId logits = graph.outputs().front().value;
  const Dim each = graph.value(logits).type.dims.front();
  const auto list = [&](const char* name, DType type) { return graph.add_input(name, {type, {each}}); };
  const ValueId draws = list(decoder_io::draws, DType::i64);
  const Graph::Scope scope(graph, "choice");
  ValueId chosen;
  if (greedy) {
    chosen = graph.apply(OpKind::argmax, {logits});
  } else {
    const ValueId temperature = list(decoder_io::temperature, DType::f32), top_k = list(decoder_io::top_k, DType::i32);
    const ValueId top_p = list(decoder_io::top_p, DType::f32), min_p = list(decoder_io::min_p, DType::f32),
                  seeds = list(decoder_io::seeds, DType::i64);
    chosen = graph.apply(OpKind::sample, {logits, temperature, top_k, top_p, min_p, {}, {}, seeds, draws});
  }
  const ValueId made = graph.add_input(decoder_io::made, {DType::i32, {rows, columns}}),
                count = graph.add_input(decoder_io::count, {DType::i32, {1}});
  const auto input = [&](const char* name) { return graph.find(name); };
  const std::vector<ValueId> advanced =
      graph.apply_all(OpKind::advance_tokens,
                      {chosen, input(decoder_io::ids), input(decoder_io::positions), input(decoder_io::slots),
                       input(decoder_io::context_lens), input(decoder_io::block_tables), draws, made, count},
                      {{"block_size", block_size}});
  graph.add_output(decoder_io::made, advanced[5]);
}

}  // namespace cermet
