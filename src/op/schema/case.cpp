#include "op/schema/case.hpp"

#include "op/schema/operator.hpp"

namespace cermet {

Fill normal(double deviation, double mean) { return {Fill::Kind::normal, mean, deviation, {}}; }
Fill uniform(double low, double high) { return {Fill::Kind::uniform, low, high, {}}; }
Fill integers(std::int64_t low, std::int64_t high) {
  return {Fill::Kind::integers, static_cast<double>(low), static_cast<double>(high), {}};
}
Fill values(std::vector<double> list) { return {Fill::Kind::values, 0, 0, std::move(list)}; }
Fill constant(double value) { return values({value}); }

}  // namespace cermet
