#include "model/parallel/expert_exchange.hpp"

namespace cermet {

std::string_view name_of(ExpertExchange exchange) { return exchange == ExpertExchange::rows ? "rows" : "gather"; }

}  // namespace cermet
