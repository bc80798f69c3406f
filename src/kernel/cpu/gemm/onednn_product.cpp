#include "kernel/cpu/gemm/onednn_product.hpp"

#include <optional>
#include <span>

#include "base/error.hpp"
#include "kernel/cpu/gemm/onednn_library.hpp"

namespace cermet::cpu {
namespace {

using Api = OneDnnPrimitives;
constexpr std::int64_t layout_rows = 128;  ///< of the product whose preferred order of weights all others take

void check(int status, const char* what) {
  if (status != 0) fail(Status::internal, "oneDNN: expected status 0 of {}, found {}", what, status);
}

/// One of oneDNN's objects.
using Object = std::unique_ptr<void, int (*)(void*)>;
template <class Create>
Object make_object(int (*destroy)(void*), const char* what, Create create) {
  void* object = nullptr;
  check(create(&object), what);
  return {object, destroy};
}

/// Those that live as long as the process.
struct Runtime {
  void* engine = nullptr;
  void* attributes = nullptr;

  Runtime() {
    constexpr int cpu = 1, callers_scratchpad = 1;
    const Api& api = onednn_primitives();
    check(api.engine_create(&engine, cpu, 0), "an engine");
    check(api.attr_create(&attributes), "attributes");
    check(api.attr_set_scratchpad_mode(attributes, callers_scratchpad), "a scratchpad mode");
  }
};
const Runtime& runtime() {
  static const Runtime objects;
  return objects;
}
void* thread_stream() {
  const Api& api = onednn_primitives();
  const thread_local Object stream = make_object(
      api.stream_destroy, "a stream", [&](void** object) { return api.stream_create(object, runtime().engine, 1); });
  return stream.get();
}

int type_of(DType type) { return type == DType::f32 ? Api::f32 : type == DType::bf16 ? Api::bf16 : Api::s8; }

/// Of a matrix with these strides, or in the order that a primitive prefers.
class MatrixDesc {
 public:
  MatrixDesc(std::int64_t rows, std::int64_t columns, int type, std::optional<std::array<std::int64_t, 2>> strides) {
    constexpr int any = 1;
    const Api& api = onednn_primitives();
    const std::array<std::int64_t, 2> sizes{rows, columns};
    if (api.memory_desc_init_by_strides)
      check(strides ? api.memory_desc_init_by_strides(value_.data(), 2, sizes.data(), type, strides->data())
                    : api.memory_desc_init_by_tag(value_.data(), 2, sizes.data(), type, any),
            "a descriptor of memory");
    else
      object_ = make_object(api.memory_desc_destroy, "a descriptor of memory", [&](void** desc) {
        return strides ? api.memory_desc_create_with_strides(desc, 2, sizes.data(), type, strides->data())
                       : api.memory_desc_create_with_tag(desc, 2, sizes.data(), type, any);
      });
  }
  const void* get() const { return object_ ? object_.get() : value_.data(); }

 private:
  alignas(16) std::array<std::byte, 1024> value_{};  ///< version 2: 696 bytes
  Object object_{nullptr, nullptr};
};

Object product_desc(const OneDnnSizes& s, const void* weights) {
  const Api& api = onednn_primitives();
  const MatrixDesc x(s.rows, s.length, type_of(s.type), std::array{s.length, std::int64_t{1}});
  const MatrixDesc sums(s.rows, s.columns, s.type == DType::i8 ? Api::s32 : Api::f32,
                        std::array{s.columns, std::int64_t{1}});
  const OneDnnAlone alone;  // it plans for the threads that there are
  return make_object(api.primitive_desc_destroy, "a product", [&](void** desc) {
    if (api.matmul_desc_create)
      return api.matmul_desc_create(desc, runtime().engine, x.get(), weights, nullptr, sums.get(),
                                    runtime().attributes);
    alignas(16) std::array<std::byte, 8192> operation{};  // 2800 bytes
    check(api.matmul_desc_init(operation.data(), x.get(), weights, nullptr, sums.get()), "a product's operands");
    return api.primitive_desc_create(desc, operation.data(), runtime().attributes, runtime().engine, nullptr);
  });
}

Object memory(const void* desc, const std::byte* data) {
  const Api& api = onednn_primitives();
  return make_object(api.memory_destroy, "memory", [&](void** object) {
    return api.memory_create(object, desc, runtime().engine, const_cast<std::byte*>(data));
  });
}

Object primitive(const void* desc) {
  const Api& api = onednn_primitives();
  return make_object(api.primitive_destroy, "a primitive",
                     [&](void** object) { return api.primitive_create(object, desc); });
}

void execute(const Object& primitive, std::span<const Api::Operand> operands) {
  check(onednn_primitives().primitive_execute(primitive.get(), thread_stream(), static_cast<int>(operands.size()),
                                              operands.data()),
        "a run");
}

}  // namespace

struct OneDnnProduct::State {
  explicit State(const OneDnnSizes& s)
      : sizes(s),
        layout(product_desc({s.type, layout_rows, s.columns, s.length},
                            MatrixDesc(s.length, s.columns, type_of(s.type), std::nullopt).get())),
        x(s.rows, s.length, type_of(s.type), std::array{s.length, std::int64_t{1}}),
        sums(s.rows, s.columns, s.type == DType::i8 ? Api::s32 : Api::f32, std::array{s.columns, std::int64_t{1}}),
        desc(product_desc(s, weights())) {}

  const void* weights() const {
    return onednn_primitives().primitive_desc_query_md(layout.get(), Api::weights_desc, 0);
  }
  const void* scratch() const {
    return onednn_primitives().primitive_desc_query_md(desc.get(), Api::scratchpad_desc, 0);
  }

  OneDnnSizes sizes;
  Object layout;  ///< owns the descriptor of the weights
  MatrixDesc x, sums;
  Object desc, product{nullptr, nullptr};
};

OneDnnProduct::OneDnnProduct(const OneDnnSizes& sizes) : state_(std::make_unique<State>(sizes)) {}
OneDnnProduct::~OneDnnProduct() = default;

std::int64_t OneDnnProduct::weight_bytes() const {
  return static_cast<std::int64_t>(onednn_primitives().memory_desc_get_size(state_->weights()));
}
std::int64_t OneDnnProduct::scratch_bytes() const {
  return static_cast<std::int64_t>(onednn_primitives().memory_desc_get_size(state_->scratch()));
}

void OneDnnProduct::pack(const std::byte* w, std::int64_t step, std::byte* packed) const {
  const Api& api = onednn_primitives();
  const OneDnnSizes& s = state_->sizes;
  const OneDnnAlone alone;
  const MatrixDesc from(s.length, s.columns, type_of(s.type), std::array{std::int64_t{1}, step});
  const Object desc = make_object(api.primitive_desc_destroy, "a reorder", [&](void** object) {
    return api.reorder_desc_create(object, from.get(), runtime().engine, state_->weights(), runtime().engine, nullptr);
  });
  const Object source = memory(from.get(), w), result = memory(state_->weights(), packed);
  execute(primitive(desc.get()),
          std::array{Api::Operand{Api::source, source.get()}, Api::Operand{Api::result, result.get()}});
}

void OneDnnProduct::prepare() {
  const OneDnnAlone alone;
  state_->product = primitive(state_->desc.get());
}

void OneDnnProduct::run(const std::byte* x, const std::byte* packed, std::byte* sums, std::byte* scratch) const {
  const Object source = memory(state_->x.get(), x), weights = memory(state_->weights(), packed),
               result = memory(state_->sums.get(), sums), pad = memory(state_->scratch(), scratch);
  execute(state_->product,
          std::array{Api::Operand{Api::source, source.get()}, Api::Operand{Api::weights, weights.get()},
                     Api::Operand{Api::result, result.get()}, Api::Operand{Api::scratchpad, pad.get()}});
}

}  // namespace cermet::cpu
