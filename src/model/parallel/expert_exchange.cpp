#include "model/parallel/expert_exchange.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {

std::optional<ExpertExchange> expert_exchange_named(std::string_view option, std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (const ExpertExchange exchange : {ExpertExchange::rows, ExpertExchange::gather})
    if (name == name_of(exchange)) return exchange;
  fail(Status::invalid_argument, "{}: expected rows or gather, found {}", option, quote(name));
}

std::string_view name_of(ExpertExchange exchange) { return exchange == ExpertExchange::rows ? "rows" : "gather"; }

}  // namespace cermet
