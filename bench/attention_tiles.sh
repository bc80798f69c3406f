#!/bin/sh
# Attention of many queries with mma.sync: wide heads, multi-head latent attention, caches of 8 bits; D128 for
# comparison. About half a minute on a GPU, most of it compilation. Usage: bench/attention_tiles.sh [options of bench op]
cermet=${CERMET:-build/bin/cermet}

row() {
  echo "# $1"
  shift
  "$cermet" bench op "$@" --device "${DEVICE:-cuda}" --seconds 0.3 --quiet || exit 1
}
ragged() {  # name, heads, key-value heads, head size, value size, configuration
  row "$1" flash_attention --kernel attention.prefill_ragged ${6:+--config "$6"} \
    --shape "q=bf16[4096,$2,$4] k=bf16[4096,$3,$4] v=bf16[4096,$3,$5]"
}
paged() {  # name, queries, heads, key-value heads, head size, value size, type of the cache, scales, configuration
  row "$1" incre_flash_attention --kernel attention.prefill_paged ${9:+--config "$9"} \
    --shape "q=bf16[$2,$3,$5] k_cache=$7[256,$4,16,$5] v_cache=$7[256,$4,16,$6] block_tables=i32[1,256] context_lens=i32[1] query_starts=i32[2] $8"
}

ragged "D128" 32 8 128 128
ragged "D192, values of 128" 32 8 192 128
ragged "D256" 16 4 256 256
ragged "D128, 32 keys" 32 8 128 128 "warp_rows=16 keys=32"
ragged "D512" 8 2 512 512
paged "MLA, values apart" 2048 16 1 576 512 bf16
paged "D128, bf16 cache" 4096 32 8 128 128 bf16
paged "D128, int8 cache, scales of tokens" 4096 32 8 128 128 i8 "k_scale=f32[256,8,16] v_scale=f32[256,8,16]"
paged "D128, int8 cache, scales of tokens, 64 keys, two blocks an SM" 4096 32 8 128 128 i8 "k_scale=f32[256,8,16] v_scale=f32[256,8,16]" \
  "warp_rows=16 keys=64"
paged "D128, e4m3 cache, scales of heads" 4096 32 8 128 128 f8_e4m3 "k_scale=f32[8] v_scale=f32[8]"
paged "D256, int8 cache, scales of tokens" 4096 16 4 256 256 i8 "k_scale=f32[256,4,16] v_scale=f32[256,4,16]"
