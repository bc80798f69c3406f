// One node of a model while it is turned into Cermet's operators: what the rows of ops.inc are written against.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "onnx/model.hpp"
#include "op/schema/attributes.hpp"
#include "op/schema/problem.hpp"

namespace cermet::onnx {

class Importer;

/// A value of the model: an input, a constant, or a result. False where an optional operand is not given.
struct Operand {
  std::int32_t slot = -1;
  explicit operator bool() const { return slot >= 0; }
  friend bool operator==(Operand, Operand) = default;
};

/// What QuantizeLinear or DequantizeLinear made a value of. A scale or zero point of several elements goes along the
/// axis.
struct QuantizedFrom {
  Operand x, scale, zero_point;  ///< zero_point: none where it is 0
  std::int64_t axis = 0;
  Operand as_signed = {};  ///< of u8: the same quantized to i8, less 128; none until something needs it
};

class Lowering {
 public:
  Lowering(Importer& importer, const Node& node, std::int64_t version)
      : importer_(importer), node_(node), version_(version) {}

  const Node& node() const { return node_; }
  std::int64_t version() const { return version_; }  ///< opset of the node's domain

  // ---- Operands and results
  std::size_t inputs() const { return node_.inputs.size(); }
  std::size_t outputs() const { return node_.outputs.size(); }
  /// Whether operand i is given: in a function the name of an input that the call leaves out stands for none.
  bool has(std::size_t i) const;
  bool wants(std::size_t o) const {
    return o < node_.outputs.size() && !node_.outputs[o].empty();
  }  ///< whether result o has a name
  /// Operand i; throws Error naming the node where it is not given.
  Operand in(std::size_t i) const;
  Operand in_or_none(std::size_t i) const { return has(i) ? in(i) : Operand{}; }
  void set(std::size_t o, Operand value);

  // ---- Attributes; `fallback` where the node has none. Throw Error naming an attribute of another type.
  bool has_attribute(std::string_view name) const { return node_.attributes.contains(std::string(name)); }
  std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  double number(std::string_view name, double fallback) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  Ints integers(std::string_view name, Ints fallback = {}) const;
  Floats numbers(std::string_view name, Floats fallback = {}) const;
  Strings texts(std::string_view name, Strings fallback = {}) const;
  const Tensor* tensor(std::string_view name) const;  ///< null where there is none
  DType dtype_of_code(std::int64_t code) const;  ///< of a TensorProto.DataType, as attributes `to` and `dtype` have it

  // ---- Types
  const TensorType& type(Operand x) const;
  DType dtype(Operand x) const { return type(x).dtype; }
  int bits(Operand x) const;  ///< 4 or 2 of integers that the file packs, which are held in 8; else 0
  int rank(Operand x) const { return type(x).rank(); }
  const Dims& dims(Operand x) const { return type(x).dims; }
  Dim dim(Operand x, int axis) const;            ///< negative axes count from the end
  int axis(std::int64_t value, int rank) const;  ///< in [0, rank); throws Error naming the node where it is outside
  /// A size that must be a number while the graph is made; where it is a symbol, the model is imported again for the
  /// sizes of each run.
  std::int64_t size(Operand x, int axis) const;
  std::int64_t constant(const Dim& dim) const;
  /// What sizes decide. Throw NeedsSizes naming the node where some sizes in their ranges say yes and others no.
  bool equals(const Dim& a, const Dim& b) const;
  bool is_negative(const Dim& a) const;
  const SymbolRanges& ranges() const;
  std::int64_t elements(Operand x) const;  ///< all sizes must be numbers

  // ---- Elements. An operand whose elements must be known ends the part of the graph that one launch can run: they are
  // computed, read, and the import goes on.
  /// Whether the elements are known now.
  bool is_known(Operand x) const;
  bool depends_on_sizes(Operand x) const;  ///< then dims_in() has elements that are no numbers
  TensorData data(Operand x) const;
  /// Of integer types; elements may be symbolic dimensions.
  Dims dims_in(Operand x) const;
  Ints ints_in(Operand x) const;       ///< numbers, 2^22 at most
  Floats numbers_in(Operand x) const;  ///< any type but complex ones
  double number_in(Operand x) const;   ///< of one element
  std::int64_t integer_in(Operand x) const;
  /// A number of elements that a list made here has; throws Error naming the node where no model would want so many.
  std::size_t listed(std::int64_t count) const;

  // ---- Making values
  Operand constant(TensorData data);
  Operand scalar(DType dtype, double value);          ///< rank 0
  Operand vector(DType dtype, const Floats& values);  ///< rank 1
  Operand ints(const Ints& values);                   ///< i64, rank 1
  Operand whole(DType dtype, std::int64_t value);     ///< rank 0; exact, where scalar() takes a double
  Operand counting(const Dim& count, const Dim& first = 0,
                   std::int64_t step = 1);                       ///< i64 [count]: first, first + step, ..
  Operand shape_value(const Dims& values, bool scalar = false);  ///< i64, elements may be symbolic
  /// Applies an operator; a result of known operands that is small enough is known. Throws Error naming the node, and
  /// the operand as the operator calls it.
  Operand op(OpKind kind, const std::vector<Operand>& inputs, const Attributes& attributes = {});
  std::vector<Operand> ops(OpKind kind, const std::vector<Operand>& inputs, const Attributes& attributes = {});

  /// Lets constants made of a tensor of the file take so many bytes more than is made of others; once for each tensor.
  void make_room(Operand x, std::int64_t bytes);
  /// The number of a draw of random numbers: 0, 1, .. in the order in which nodes are imported. Called once no more
  /// elements are read.
  std::uint64_t next_draw();
  /// Names the iteration of the loops around the node; 0 outside and in the first.
  std::uint64_t iteration() const;

  /// Imports the nodes of a graph attribute in place, its inputs being these: its results. Branches and loops in it are
  /// refused.
  std::vector<Operand> graph_results(std::string_view attribute_name, const std::vector<Operand>& inputs);

  void note_bits(Operand x, int bits);
  /// Keeps what a result of QuantizeLinear or DequantizeLinear is made of, for the nodes that read it.
  void note_quantized_from(Operand y, const QuantizedFrom& from);
  /// What note_quantized_from() kept, where its operands are there in this part of the graph.
  std::optional<QuantizedFrom> quantized_from(Operand y) const;

  // ---- Often needed
  Operand cast(Operand x, DType to);               ///< x itself where it has the type
  Operand reshape(Operand x, const Dims& to);      ///< x itself where it has the dimensions
  Operand transpose(Operand x, Ints permutation);  ///< x itself for the identity
  /// Of more dimensions than a tensor may have, where those that stay side by side and those of size 1 leave few
  /// enough.
  Operand transpose_many(Operand x, const Ints& permutation);
  Operand move_axis(Operand x, int from, int to);
  Operand unsqueeze(Operand x, const Ints& axes);  ///< positions in the result
  Operand squeeze(Operand x, const Ints& axes);    ///< axes of size 1
  Operand expand(Operand x, const Dims& to);       ///< broadcasts both ways, as ONNX's Expand does
  Operand slice(Operand x, int axis, std::int64_t start, std::int64_t end, std::int64_t step = 1);
  /// `count` positions of an axis from `first` on, all of them inside; x itself where that is everything in order.
  Operand take(Operand x, int axis, const Dim& first, const Dim& count, std::int64_t step = 1);
  Operand concat(std::vector<Operand> xs, int axis);
  Operand filled(const Dims& dims, DType dtype, double value);
  /// lhs op rhs with NumPy broadcasting; a number takes the other operand's type.
  Operand binary(OpKind kind, Operand a, Operand b) { return op(kind, {a, b}); }
  Operand binary(OpKind kind, Operand a, double b) { return op(kind, {a, scalar(dtype(a), b)}); }
  Operand unary(OpKind kind, Operand x) { return op(kind, {x}); }
  /// A reduction (reduce_sum, ...) over axes; all of them where there are none and `none_is_all`.
  Operand reduce(OpKind kind, Operand x, const Ints& axes, bool keep_dims);
  /// Computes in float32 where x has fewer bits, and rounds to x's type at the end with cast().
  Operand widened(Operand x);

  // ---- Errors
  /// Error(unsupported) naming the node.
  template <class... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    fail_unsupported(fmt::format(format, std::forward<Args>(args)...));
  }
  /// Error(invalid_file) naming the node, where what the model says cannot be: "attribute axis: expected ..., found
  /// ...".
  template <class... Args>
  void expect(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (!condition) fail_invalid(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  [[noreturn]] void fail_unsupported(const std::string& what) const;
  [[noreturn]] void fail_invalid(const std::string& what) const;
  const Attribute* attribute(std::string_view name) const;
  Operand elements_of(
      Operand x) const;  ///< x, or where it has more dimensions than a tensor may have, its elements in fewer
  std::vector<Operand> op_of_many(OpKind kind, const std::vector<Operand>& inputs, const Attributes& attributes);

  Importer& importer_;
  const Node& node_;
  std::int64_t version_;
};

/// How an ONNX operator becomes Cermet's: sets every result that wants(). `first` and `last`: opsets of its domain in
/// which the row holds.
struct OpRow {
  std::string_view name, domain;
  std::int64_t first, last;
  void (*lower)(Lowering&);
};
std::span<const OpRow> op_rows();
/// The row of an operator in an opset; null where there is none.
const OpRow* find_row(std::string_view op, std::string_view domain, std::int64_t opset);

}  // namespace cermet::onnx
