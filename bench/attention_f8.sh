#!/bin/sh
# Prefill in 8 bits on Hopper: queries, keys and weights of e4m3, values in columns; causal, 32 + 8 heads.
cermet=${CERMET:-build/bin/cermet}

paged() {  # name, sequences, tokens of each, head size, tokens of a page, configuration
  pages=$(($3 / $5))
  echo "# $1"
  "$cermet" bench op incre_flash_attention --kernel attention.prefill_paged_f8 --device "${DEVICE:-cuda}" --seconds 0.5 --quiet \
    ${6:+--config "$6"} \
    --shape "q=f8_e4m3[$(($2 * $3)),32,$4] k_cache=f8_e4m3[$(($2 * pages)),8,$5,$4] v_cache=f8_e4m3[$(($2 * pages)),8,$(($5 / 16)),$4,16] block_tables=i32[$2,$pages] context_lens=i32[$2] query_starts=i32[$(($2 + 1))]" || exit 1
}

paged "D128, 1 x 16384" 1 16384 128 16
paged "D128, 4 x 4096" 4 4096 128 16
paged "D128, 8 x 1024" 8 1024 128 16
paged "D128, 4 x 4096, pages of 64" 4 4096 128 64
paged "D64, 8 x 1024" 8 1024 64 16
paged "D64, 1 x 16384" 1 16384 64 16
paged "D192, 1 x 8192" 1 8192 192 16
paged "D256, 1 x 8192" 1 8192 256 16
for config in "warpgroups=2 keys=128 stages=4" "warpgroups=2 keys=128 stages=4 turns=1" "warpgroups=3 keys=64 stages=4"; do
  paged "D128, 1 x 16384, $config" 1 16384 128 16 "$config"
  paged "D128, 4 x 4096, $config" 4 4096 128 16 "$config"
done
