#include "onnx/lowering.hpp"

#include <algorithm>
#include <numeric>

#include "base/buffer.hpp"
#include "onnx/importer.hpp"
#include "onnx/proto_tensor.hpp"
#include "op/schema/reference.hpp"

namespace cermet::onnx {
namespace {

constexpr std::int64_t most_listed = std::int64_t{1} << 22;

TensorView view_of(const TensorData& data) {
  return {const_cast<std::byte*>(data.bytes().data()), data.type().dtype, cermet::bind(data.type().dims, {})};
}

TensorData filled_data(DType dtype, const Shape& shape, const Floats& values) {
  OwnedTensor memory(dtype, shape);
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    store(memory.view, i, values[static_cast<std::size_t>(i) % values.size()]);
  return {{dtype, to_dims(shape)},
          std::span(memory.view.as<const std::byte>(), static_cast<std::size_t>(dense_bytes(dtype, shape)))};
}

}  // namespace

bool Lowering::has(std::size_t i) const {
  return i < node_.inputs.size() && !node_.inputs[i].empty() && importer_.find(node_.inputs[i]);
}

Operand Lowering::in(std::size_t i) const {
  expect(i < node_.inputs.size() && !node_.inputs[i].empty(), "operand {}: expected a value, found none", i);
  const Operand x = importer_.find(node_.inputs[i]);
  expect(static_cast<bool>(x), "operand {}: expected a value named '{}', found none", i, node_.inputs[i]);
  return x;
}

void Lowering::set(std::size_t o, Operand value) {
  if (wants(o)) importer_.bind(node_.outputs[o], value);
}

const Attribute* Lowering::attribute(std::string_view name) const {
  const auto found = node_.attributes.find(std::string(name));
  return found == node_.attributes.end() ? nullptr : &found->second;
}

namespace {

template <class T>
T typed(const Lowering& l, const Attribute* attribute, std::string_view name, std::string_view expected, T fallback) {
  if (!attribute) return fallback;
  const T* value = std::get_if<T>(attribute);
  l.expect(value, "attribute {}: expected {}, found another type", name, expected);
  return *value;
}

}  // namespace

std::int64_t Lowering::integer(std::string_view name, std::int64_t fallback) const {
  return typed(*this, attribute(name), name, "an integer", fallback);
}
double Lowering::number(std::string_view name, double fallback) const {
  return typed(*this, attribute(name), name, "a number", fallback);
}
std::string Lowering::text(std::string_view name, std::string_view fallback) const {
  return typed(*this, attribute(name), name, "a string", std::string(fallback));
}
Ints Lowering::integers(std::string_view name, Ints fallback) const {
  return typed(*this, attribute(name), name, "integers", std::move(fallback));
}
Floats Lowering::numbers(std::string_view name, Floats fallback) const {
  return typed(*this, attribute(name), name, "numbers", std::move(fallback));
}
Strings Lowering::texts(std::string_view name, Strings fallback) const {
  return typed(*this, attribute(name), name, "strings", std::move(fallback));
}

const Tensor* Lowering::tensor(std::string_view name) const {
  const Attribute* found = attribute(name);
  if (!found) return nullptr;
  const auto* tensor = std::get_if<Tensor>(found);
  expect(tensor, "attribute {}: expected a tensor, found another type", name);
  return tensor;
}

DType Lowering::dtype_of_code(std::int64_t code) const {
  return dtype_of(code, fmt::format("node '{}' ({})", node_.name, node_.op));
}

const TensorType& Lowering::type(Operand x) const { return importer_.slot(x).type; }

Dim Lowering::dim(Operand x, int axis) const { return dims(x)[static_cast<std::size_t>(this->axis(axis, rank(x)))]; }

int Lowering::axis(std::int64_t value, int rank) const {
  expect(value >= -rank && value < rank, "axis: expected one in [{}, {}), found {}", -rank, rank, value);
  return static_cast<int>(value < 0 ? value + rank : value);
}

std::int64_t Lowering::constant(const Dim& dim) const {
  if (!dim.is_constant())
    throw NeedsSizes{fmt::format("node '{}' ({}) needs the number {}", node_.name, node_.op, dim.to_string())};
  return dim.constant();
}

bool Lowering::equals(const Dim& a, const Dim& b) const {
  const auto known = onnx::equals(a, b, ranges());
  if (!known)
    throw NeedsSizes{fmt::format("node '{}' ({}): sizes in the range differ in whether {} is {}", node_.name, node_.op,
                                 a.to_string(), b.to_string()),
                     a - b};
  return *known;
}

bool Lowering::is_negative(const Dim& a) const {
  const auto known = is_less(a, 0, ranges());
  if (!known)
    throw NeedsSizes{fmt::format("node '{}' ({}): sizes in the range differ in whether {} is negative", node_.name,
                                 node_.op, a.to_string()),
                     a};
  return *known;
}

const SymbolRanges& Lowering::ranges() const { return importer_.ranges(); }

std::int64_t Lowering::size(Operand x, int axis) const { return constant(dim(x, axis)); }

std::int64_t Lowering::elements(Operand x) const { return constant(product(dims(x))); }

bool Lowering::is_known(Operand x) const { return importer_.is_known(x); }

bool Lowering::depends_on_sizes(Operand x) const { return importer_.slot(x).symbolic.has_value(); }

TensorData Lowering::data(Operand x) const { return importer_.known(x); }

Dims Lowering::dims_in(Operand x) const {
  if (importer_.slot(x).symbolic) return *importer_.slot(x).symbolic;
  const Ints numbers = ints_in(x);
  return {numbers.begin(), numbers.end()};
}

Ints Lowering::ints_in(Operand x) const {
  const TensorData& data = importer_.known(x);
  expect(is_integer(data.type().dtype) || data.type().dtype == DType::boolean, "expected integers, found {}",
         data.type().to_string());
  const TensorView view = view_of(data);
  Ints values(listed(view.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = load_integer(view, static_cast<std::int64_t>(i));
  return values;
}

Floats Lowering::numbers_in(Operand x) const {
  const TensorView view = view_of(importer_.known(x));
  Floats values(listed(view.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = load(view, static_cast<std::int64_t>(i));
  return values;
}

std::int64_t Lowering::integer_in(Operand x) const {
  const Ints values = ints_in(x);
  expect(values.size() == 1, "expected one element, found {}", type(x).to_string());
  return values[0];
}

std::size_t Lowering::listed(std::int64_t count) const {
  expect(count >= 0 && count <= most_listed, "expected a list of at most {} elements, found {}", most_listed, count);
  importer_.evaluate_work(static_cast<double>(count));
  return static_cast<std::size_t>(count);
}

double Lowering::number_in(Operand x) const {
  const Floats values = numbers_in(x);
  expect(values.size() == 1, "expected one element, found {}", type(x).to_string());
  return values[0];
}

Operand Lowering::constant(TensorData data) { return importer_.add_constant(std::move(data)); }

Operand Lowering::scalar(DType dtype, double value) { return constant(filled_data(dtype, {}, {value})); }

Operand Lowering::vector(DType dtype, const Floats& values) {
  return constant(filled_data(dtype, {static_cast<std::int64_t>(values.size())}, values));
}

Operand Lowering::ints(const Ints& values) {
  return constant(TensorData::of({DType::i64, {static_cast<std::int64_t>(values.size())}}, values));
}

Operand Lowering::whole(DType dtype, std::int64_t value) {
  return cast(constant(TensorData::of({DType::i64, {}}, Ints{value})), dtype);
}

Operand Lowering::counting(const Dim& count, const Dim& first, std::int64_t step) {
  if (!count.is_constant())
    return importer_.add({.name = node_.name,
                          .type = {DType::i64, {count}},
                          .data = {},
                          .symbolic = {},
                          .counting = Progression{first, count, step}});
  Dims values(listed(count.constant()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<std::int64_t>(i) * step;
  return shape_value(values);
}

Operand Lowering::shape_value(const Dims& values, bool scalar) {
  const TensorType type{DType::i64, scalar ? Dims{} : Dims{static_cast<std::int64_t>(values.size())}};
  if (std::ranges::all_of(values, &Dim::is_constant)) {
    Ints numbers;
    for (const Dim& d : values) numbers.push_back(d.constant());
    return constant(TensorData::of(type, numbers));
  }
  return importer_.add({.name = node_.name, .type = type, .data = {}, .symbolic = values});
}

std::vector<Operand> Lowering::ops(OpKind kind, const std::vector<Operand>& inputs, const Attributes& attributes) {
  if (std::ranges::any_of(inputs, [&](Operand x) { return x && rank(x) > Shape::max_rank; }))
    return op_of_many(kind, inputs, attributes);
  return importer_.apply(kind, inputs, attributes, node_.name);
}

Operand Lowering::op(OpKind kind, const std::vector<Operand>& inputs, const Attributes& attributes) {
  return ops(kind, inputs, attributes).at(0);
}

std::vector<Operand> Lowering::graph_results(std::string_view attribute_name, const std::vector<Operand>& inputs) {
  const Attribute* found = attribute(attribute_name);
  const auto* graph = found ? std::get_if<std::shared_ptr<const GraphDef>>(found) : nullptr;
  expect(graph, "attribute {}: expected a graph, found none", attribute_name);
  expect((*graph)->inputs.size() == inputs.size(), "attribute {}: expected a graph of {} inputs, found {}",
         attribute_name, inputs.size(), (*graph)->inputs.size());
  return importer_.in_place(**graph, inputs);
}

int Lowering::bits(Operand x) const { return importer_.slot(x).bits; }

void Lowering::note_bits(Operand x, int bits) { importer_.slot(x).bits = bits; }

void Lowering::note_quantized_from(Operand y, const QuantizedFrom& from) { importer_.slot(y).quantized_from = from; }

std::optional<QuantizedFrom> Lowering::quantized_from(Operand y) const {
  std::optional<QuantizedFrom> from = importer_.slot(y).quantized_from;
  if (!from || !importer_.is_here(from->x) || !importer_.is_here(from->scale) ||
      (from->zero_point && !importer_.is_here(from->zero_point)))
    return {};
  if (from->as_signed && !importer_.is_here(from->as_signed)) from->as_signed = {};
  return from;
}

Operand Lowering::cast(Operand x, DType to) {
  return dtype(x) == to ? x : op(OpKind::cast, {x}, {{"out_dtype", std::string(name_of(to))}});
}

Operand Lowering::transpose(Operand x, Ints permutation) {
  bool identity = true;
  for (std::size_t i = 0; i < permutation.size(); ++i)
    identity = identity && permutation[i] == static_cast<std::int64_t>(i);
  if (!identity && rank(x) > Shape::max_rank) return transpose_many(x, permutation);
  return identity ? x : op(OpKind::transpose, {x}, {{"permutation", std::move(permutation)}});
}

Operand Lowering::move_axis(Operand x, int from, int to) {
  Ints permutation(static_cast<std::size_t>(rank(x)));
  std::iota(permutation.begin(), permutation.end(), 0);
  permutation.erase(permutation.begin() + from);
  permutation.insert(permutation.begin() + to, from);
  return transpose(x, std::move(permutation));
}

Operand Lowering::concat(std::vector<Operand> xs, int axis) {
  while (xs.size() > 1) {
    std::vector<Operand> joined;
    for (std::size_t i = 0; i < xs.size(); i += max_variadic) {
      const std::vector<Operand> group(xs.begin() + static_cast<std::ptrdiff_t>(i),
                                       xs.begin() + static_cast<std::ptrdiff_t>(std::min(xs.size(), i + max_variadic)));
      joined.push_back(group.size() == 1 ? group[0] : op(OpKind::concat, group, {{"axis", std::int64_t{axis}}}));
    }
    xs = std::move(joined);
  }
  return xs.at(0);
}

Operand Lowering::filled(const Dims& dims, DType dtype, double value) {
  const Operand one = scalar(dtype, value);
  return dims.empty() ? one : expand(one, dims);
}

Operand Lowering::reduce(OpKind kind, Operand x, const Ints& axes, bool keep_dims) {
  return op(kind, {x}, {{"axes", axes}, {"keepdims", keep_dims}});
}

Operand Lowering::widened(Operand x) {
  return size_of(dtype(x)) < 4 && is_floating(dtype(x)) ? cast(x, DType::f32) : x;
}

void Lowering::fail_unsupported(const std::string& what) const {
  fail(Status::unsupported, "node '{}' ({}): {}", node_.name, node_.op, what);
}

void Lowering::fail_invalid(const std::string& what) const {
  fail(Status::invalid_file, "node '{}' ({}): {}", node_.name, node_.op, what);
}

}  // namespace cermet::onnx
