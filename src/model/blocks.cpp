#include "model/blocks.hpp"

namespace cermet {

FeedForward Mixture::expert(std::int64_t number) const {
  FeedForward expert = each;
  for (Linear* linear : {&expert.gate, &expert.up, &expert.down})
    linear->name.replace(linear->name.find('*'), 1, std::to_string(number));
  return expert;
}

std::string parent_of(const std::string& name) { return name.substr(0, name.rfind('.') + 1); }

}  // namespace cermet
