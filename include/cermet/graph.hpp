// Graphs of operators, from C++ (17): header-only, over the C interface of graph.h, which has the details. Errors are
// exceptions of type cermet::error.
//
//   cermet::graph graph("block");
//   auto x = graph.input("x", cermet::dtype::bf16, {"T", 64});  // T is a size that runs give
//   auto w = graph.constant("w", weight);
//   graph.output("y", graph.rms_norm(x, {w, 1e-5}));
//   auto session = graph.compile({.maxima = {{"T", 512}}});
//   auto y = session(tensor).front();                           // new memory; run(inputs, outputs, stream) writes the
//   caller's
#ifndef CERMET_GRAPH_HPP_
#define CERMET_GRAPH_HPP_

#include <cermet/graph_ops.hpp>

#include <initializer_list>
#include <map>
#include <optional>
#include <utility>

namespace cermet {

/// A dimension of an input: a number, or the name of a size that runs give, or an expression: 64, "T", "2*T+1".
struct extent {
  std::string text;
  extent(std::int64_t size) : text(std::to_string(size)) {}  // NOLINT(google-explicit-constructor)
  extent(int size) : text(std::to_string(size)) {}           // NOLINT(google-explicit-constructor)
  extent(const char* symbol) : text(symbol) {}               // NOLINT(google-explicit-constructor)
  extent(std::string symbol) : text(std::move(symbol)) {}    // NOLINT(google-explicit-constructor)
};

/// What a value of a graph, or an input or a result of a session, is.
struct value_info {
  std::string name;
  dtype type;
  std::vector<std::int64_t> shape;   ///< -1 for a size that runs give
  std::vector<std::string> symbols;  ///< the dimensions as text: "T", "64"
  std::string text;                  ///< "bf16[T, 64]"

  explicit value_info(const cermet_value_info& from)
      : name(from.name),
        type(face::dtype_of(from.dtype)),
        shape(from.shape, from.shape + from.ndim),
        symbols(from.symbols, from.symbols + from.ndim),
        text(from.type) {}
};

/// Tensors by name that sessions share; what is packed or computed of them exists once. Used by one thread at a time.
class weights {
 public:
  explicit weights(const handle& on = default_handle()) {
    cermet_weights* made = nullptr;
    face::check(cermet_weights_create(on.get(), &made));
    weights_.reset(made, cermet_weights_destroy);
  }
  /// Gives or replaces a tensor, which is kept; sessions take the new one at their next run.
  void set(const std::string& name, const tensor& values) {
    const DLTensor dl = values.dl();
    face::check(cermet_weights_set(get(), name.c_str(), face::row_of(values.type()).name, &dl));
    (*tensors_)[name] = values;
  }
  std::size_t bytes() const { return cermet_weights_bytes(get()); }
  cermet_weights* get() const { return weights_.get(); }

 private:
  friend class graph;
  /// Constants of a graph, which the store may read.
  void keep(const std::map<std::string, tensor>& constants) const {
    tensors_->insert(constants.begin(), constants.end());
  }
  std::shared_ptr<std::map<std::string, tensor>> tensors_ = std::make_shared<std::map<std::string, tensor>>();
  std::shared_ptr<cermet_weights> weights_;
};

/// How a graph is compiled; cermet_compile_options says what is what.
struct compile_options {
  std::map<std::string, std::int64_t> maxima = {};
  std::string fusion = "full", rounding = "strict";
  std::vector<std::string> skip = {};
  bool capture = true;
  std::string super_kernel = {}, super_kernel_options = {};
  std::optional<cermet::weights> weights = {};  ///< shared with other sessions
};

/// A compiled graph. Used by one thread at a time.
class session {
 public:
  session(cermet_graph* graph, const compile_options& how) {
    std::vector<cermet_maximum> maxima;
    std::vector<const char*> skip;
    for (const auto& [name, most] : how.maxima) maxima.push_back({name.c_str(), most});
    for (const std::string& step : how.skip) skip.push_back(step.c_str());
    cermet_compile_options options = cermet_compile_defaults();
    options.fusion = how.fusion.c_str();
    options.rounding = how.rounding.c_str();
    options.maxima = maxima.data();
    options.maximum_count = maxima.size();
    options.skip = skip.data();
    options.skip_count = skip.size();
    options.capture = how.capture;
    options.super_kernel = how.super_kernel.empty() ? nullptr : how.super_kernel.c_str();
    options.super_kernel_options = how.super_kernel_options.empty() ? nullptr : how.super_kernel_options.c_str();
    if (how.weights) options.weights = how.weights->get();
    weights_ = how.weights;
    cermet_session* made = nullptr;
    face::check(cermet_graph_compile(graph, &options, &made));
    session_.reset(made);
    for (std::size_t i = 0; i < cermet_session_input_count(made); ++i)
      inputs_.push_back(describe(cermet_session_input, i));
    for (std::size_t i = 0; i < cermet_session_output_count(made); ++i)
      outputs_.push_back(describe(cermet_session_output, i));
  }

  const std::vector<value_info>& inputs() const { return inputs_; }
  const std::vector<value_info>& outputs() const { return outputs_; }

  /// Runs on tensors in the order of the inputs, in memory of the host or of the handle's device; results are in new
  /// host memory. One that is an input's memory is that tensor.
  template <class... Tensors>
  std::vector<tensor> operator()(const Tensors&... tensors) {
    return all({tensors...});
  }
  std::vector<tensor> all(const std::vector<tensor>& given) {
    std::vector<tensor> made;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const std::int32_t shared = cermet_session_output_alias(get(), i);
      if (shared >= 0) made.push_back(given.at(static_cast<std::size_t>(shared)));
      else made.emplace_back(output_shape(i, given), outputs_[i].type);
    }
    run(given, made);
    return made;
  }
  /// Runs into the caller's memory, on the handle's device and the caller's stream: cermet_session_run. tensor() or no
  /// outputs at all leave results in the session's memory.
  void run(const std::vector<tensor>& given, const std::vector<tensor>& results = {}, stream on = {}) {
    const pointers in(given), out(results);
    face::check(
        cermet_session_run(get(), in.list.data(), in.list.size(), out.list.data(), out.list.size(), on.native()));
  }
  /// Index of the input whose memory a result is, or -1.
  std::int32_t output_alias(std::size_t index) const { return cermet_session_output_alias(get(), index); }
  /// Whether runs write the memory of an input.
  bool input_is_written(std::size_t index) const { return cermet_session_input_is_written(get(), index) != 0; }
  /// A result of the last run where it is, valid until the next run.
  tensor result(std::size_t index) {
    DLTensor made{};
    face::check(cermet_session_result(get(), index, &made));
    return tensor::view(made, outputs_[index].type);
  }
  /// A copy of it in host memory.
  tensor result_copy(std::size_t index) {
    DLManagedTensor* made = nullptr;
    face::check(cermet_session_result_copy(get(), index, &made));
    return tensor::from_dlpack(made, outputs_[index].type);
  }
  /// The shape of a result for these inputs.
  std::vector<std::int64_t> output_shape(std::size_t index, const std::vector<tensor>& given) {
    std::vector<std::int64_t> shape(outputs_.at(index).shape.size() + 1);  // so that there is an address for rank 0 too
    const pointers in(given);
    face::check(cermet_session_output_shape(get(), index, in.list.data(), in.list.size(), shape.data()));
    shape.pop_back();
    return shape;
  }
  /// Every compile step with its result, then one line for each launch.
  std::string explain() {
    const char* text = cermet_session_explain(get());
    if (!text) throw error(CERMET_INTERNAL, cermet_last_error_message());
    return text;
  }
  std::size_t steps() const { return cermet_session_step_count(get()); }
  std::size_t arena_bytes() const { return cermet_session_arena_bytes(get()); }
  std::size_t constant_bytes() const { return cermet_session_constant_bytes(get()); }
  cermet_session* get() const { return session_.get(); }

 private:
  struct destroy {
    void operator()(cermet_session* s) const { cermet_session_destroy(s); }
  };
  /// Tensors as the C interface takes them.
  struct pointers {
    std::vector<DLTensor> tensors;
    std::vector<DLTensor*> list;
    explicit pointers(const std::vector<tensor>& from) {
      for (const tensor& t : from) tensors.push_back(t.dl());
      for (std::size_t i = 0; i < from.size(); ++i) list.push_back(from[i] ? &tensors[i] : nullptr);
    }
  };
  template <class Query>
  value_info describe(Query query, std::size_t i) const {
    cermet_value_info info{};
    face::check(query(get(), i, &info));
    return value_info(info);
  }

  std::optional<weights> weights_;  // whose tensors it reads
  std::unique_ptr<cermet_session, destroy> session_;
  std::vector<value_info> inputs_, outputs_;
};

/// A graph that is being built: it has a method for each operator. Used by one thread at a time.
class graph : public graph_operators {
 public:
  explicit graph(const std::string& name = "graph", const handle& on = default_handle()) {
    cermet_graph* made = nullptr;
    face::check(cermet_graph_create(on.get(), name.c_str(), &made));
    graph_.reset(made);
  }
  /// A graph from its text. Constants that the text only declares get values from set_constant().
  static graph parse(const std::string& text, const handle& on = default_handle()) {
    cermet_graph* made = nullptr;
    face::check(cermet_graph_parse(on.get(), text.c_str(), &made));
    return graph(made);
  }
  /// The graph as text.
  std::string text() const {
    const char* text = cermet_graph_text(get());
    if (!text) throw error(CERMET_INTERNAL, cermet_last_error_message());
    return text;
  }

  /// The range of a size that runs give.
  void symbol(const std::string& name, std::int64_t least, std::int64_t greatest) {
    face::check(cermet_graph_symbol(get(), name.c_str(), least, greatest));
  }
  value input(const std::string& name, dtype type, std::initializer_list<extent> shape) {
    return input(name, type, std::vector<extent>(shape));
  }
  value input(const std::string& name, dtype type, const std::vector<extent>& shape) {
    cermet_value made = CERMET_NO_VALUE;
    face::check(cermet_graph_input(get(), name.c_str(), type_text(type, shape).c_str(), &made));
    return value(made);
  }
  /// An input whose tensors have their dimensions in this order in memory: cermet_graph_input_in_order.
  value input(const std::string& name, dtype type, const std::vector<extent>& shape,
              const std::vector<std::int64_t>& order) {
    require_order(order, shape.size());
    cermet_value made = CERMET_NO_VALUE;
    face::check(cermet_graph_input_in_order(get(), name.c_str(), type_text(type, shape).c_str(), order.data(), &made));
    return value(made);
  }
  /// A constant, which the graph keeps and every compile() reads.
  value constant(const std::string& name, const tensor& values) {
    cermet_value made = CERMET_NO_VALUE;
    const DLTensor dl = values.dl();
    face::check(cermet_graph_constant(get(), name.c_str(), face::row_of(values.type()).name, &dl, &made));
    constants_[name] = values;
    return value(made);
  }
  /// A constant whose values are part of the graph and of its text.
  value literal(const std::string& name, const tensor& values) {
    cermet_value made = CERMET_NO_VALUE;
    const DLTensor dl = values.dl();
    face::check(cermet_graph_literal(get(), name.c_str(), face::row_of(values.type()).name, &dl, &made));
    return value(made);
  }
  void set_constant(const std::string& name, const tensor& values) {
    const DLTensor dl = values.dl();
    face::check(cermet_graph_set_constant(get(), name.c_str(), &dl));
    constants_[name] = values;
  }
  void output(const std::string& name, value of) { face::check(cermet_graph_output(get(), name.c_str(), of.id())); }
  /// A result with its dimensions in this order in memory; run() is given tensors of such strides, or none.
  void output(const std::string& name, value of, const std::vector<std::int64_t>& order) {
    require_order(order, info(of).shape.size());
    face::check(cermet_graph_output_in_order(get(), name.c_str(), of.id(), order.data()));
  }
  /// Once a run has ended, the memory of an input holds the value: cermet_graph_update.
  void update(value input, value stored) { face::check(cermet_graph_update(get(), input.id(), stored.id())); }

  /// Adds a node by its operator's name: every result. `names`: of the results; none: made of scope and operator.
  std::vector<value> apply(const std::string& op, const std::vector<value>& inputs,
                           const std::vector<attribute>& attributes = {}, const std::vector<std::string>& names = {}) {
    std::vector<cermet_value> operands;
    std::vector<cermet_attribute> list;
    for (const value& v : inputs) operands.push_back(v.id());
    for (const attribute& a : attributes) list.push_back(a.get());
    return append(op.c_str(), operands, list.data(), list.size(), names);
  }

  /// Ends a scope at the end of its block.
  class part {
   public:
    part(cermet_graph* of, cermet_status (*end)(cermet_graph*)) : graph_(of), end_(end) {}
    part(part&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)), end_(other.end_) {}
    part& operator=(part&&) = delete;
    ~part() {
      if (graph_) end_(graph_);
    }

   private:
    cermet_graph* graph_;
    cermet_status (*end_)(cermet_graph*);
  };
  /// Names the part of a model that is built while the result lives: auto layer = graph.scope("layers.0").
  [[nodiscard]] part scope(const std::string& name) {
    face::check(cermet_graph_scope_begin(get(), name.c_str()));
    return {get(), cermet_graph_scope_end};
  }

  /// Nodes that are added while the result lives belong to a super-kernel region, which may be entered again:
  /// auto scope = graph.super_kernel("sp1", "stream-fusion=1:strict-scope-check=abort"). Without a name they belong to
  /// none.
  [[nodiscard]] part super_kernel(const std::string& name, const std::string& options = "") {
    face::check(cermet_graph_super_kernel_begin(get(), name.c_str(), options.c_str()));
    return {get(), cermet_graph_super_kernel_end};
  }
  [[nodiscard]] part super_kernel() {
    face::check(cermet_graph_super_kernel_begin(get(), nullptr, nullptr));
    return {get(), cermet_graph_super_kernel_end};
  }

  value find(const std::string& name) const { return value(cermet_graph_find(get(), name.c_str())); }
  value_info info(value of) const {
    cermet_value_info made{};
    face::check(cermet_graph_value(get(), of.id(), &made));
    return value_info(made);
  }
  session compile(const compile_options& options = {}) const {
    if (options.weights) options.weights->keep(constants_);
    return {get(), options};
  }
  cermet_graph* get() const { return graph_.get(); }

 private:
  struct destroy {
    void operator()(cermet_graph* g) const { cermet_graph_destroy(g); }
  };
  explicit graph(cermet_graph* made) : graph_(made) {}

  static std::string type_text(dtype type, const std::vector<extent>& shape) {
    std::string text = std::string(face::row_of(type).name) + "[";
    for (const extent& d : shape) text += (&d == shape.data() ? "" : ", ") + d.text;
    return text + "]";
  }
  static void require_order(const std::vector<std::int64_t>& order, std::size_t rank) {
    if (order.size() != rank)
      throw error(CERMET_INVALID_ARGUMENT, "order: expected an entry for each of " + std::to_string(rank) +
                                               " dimensions, found " + std::to_string(order.size()));
  }

  std::vector<value> append(const char* op, const std::vector<cermet_value>& inputs, const cermet_attribute* attributes,
                            std::size_t count, const std::vector<std::string>& names) {
    std::vector<const char*> pointers;
    for (const std::string& name : names) pointers.push_back(name.c_str());
    pointers.resize(face::most_tensors);  // so that there is one for every result
    cermet_value made[face::most_tensors];
    std::size_t results = 0;
    face::check(cermet_graph_apply(get(), op, inputs.data(), inputs.size(), attributes, count,
                                   names.empty() ? nullptr : pointers.data(), made, face::most_tensors, &results));
    std::vector<value> list;
    for (std::size_t i = 0; i < results; ++i) list.emplace_back(made[i]);
    return list;
  }
  std::vector<value> add_node(const char* op, const std::vector<cermet_value>& inputs,
                              const cermet_attribute* attributes, std::size_t count) override {
    return append(op, inputs, attributes, count, {});
  }

  std::unique_ptr<cermet_graph, destroy> graph_;
  std::map<std::string, tensor> constants_;  // whose memory compile() reads
};

}  // namespace cermet

#endif  // CERMET_GRAPH_HPP_
