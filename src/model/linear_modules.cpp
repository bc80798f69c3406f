#include "model/linear_modules.hpp"

namespace cermet {
namespace {

using Role = LinearModule::Role;

class ModuleList {
 public:
  void add(const Attention& attention) {
    const std::string group = parent_of(attention.q.name) + "qkv";
    for (const Linear* linear : {&attention.q, &attention.k, &attention.v}) add(*linear, Role::qkv, group, group);
    add(attention.o, Role::o, attention.o.name, attention.o.name);
  }
  void add(const FeedForward& part) {
    const std::string prefix = parent_of(part.gate.name);
    add(part, prefix + "gate_up", prefix + "down");
  }
  void add(const Mixture& mixture) {
    add(mixture.router, Role::router, mixture.router.name, mixture.router.name);
    const std::string group = parent_of(mixture.router.name) + "experts";
    for (expert_ = 0; expert_ < mixture.experts(); ++expert_) add(mixture.expert(expert_), group, group);
    expert_ = -1;
  }
  void add(const Linear& linear, Role role, const std::string& group, const std::string& input_group) {
    modules.push_back(
        {linear.name, role, linear.rows, linear.columns, layer, expert_, linear.bias, group, input_group});
  }

  std::int64_t layer = 0;
  std::vector<LinearModule> modules;

 private:
  void add(const FeedForward& part, const std::string& gate_up_group, const std::string& down_group) {
    const std::string prefix = parent_of(part.gate.name);
    for (const Linear* linear : {&part.gate, &part.up}) add(*linear, Role::gate_up, gate_up_group, prefix + "gate_up");
    add(part.down, Role::down, down_group, prefix + "down");
  }

  std::int64_t expert_ = -1;
};

}  // namespace

std::vector<LinearModule> linear_modules(const DecoderModel& decoder) {
  ModuleList list;
  for (const Layer& layer : decoder.layers) {
    for (const Block& block : layer) std::visit([&](const auto& body) { list.add(body); }, block.body);
    ++list.layer;
  }
  list.layer = -1;
  if (!decoder.is_tied()) list.add(decoder.head, Role::head, decoder.head.name, decoder.head.name);
  return std::move(list.modules);
}

}  // namespace cermet
