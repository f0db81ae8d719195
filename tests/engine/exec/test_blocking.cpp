// SPDX-License-Identifier: Apache-2.0
// The blocking model: cuts and sizes for given caches, shapes and tiles, without running anything.
#include <doctest/doctest.h>

#include <algorithm>

#include "../../../engine/exec/blocking.h"

using namespace einkern;
using exec::Blocks;
using exec::choose_blocks;
using exec::Cut;
using exec::ProductSize;
using exec::TileSize;

namespace {

constexpr TileSize kWide{14, 32}, kNarrow{6, 16};

Machine caches(std::int64_t l1, std::int64_t l2) {
  Machine machine;
  machine.l1d_bytes = l1;
  machine.l2_bytes = l2;
  return machine;
}

const Machine kServer = caches(48 << 10, 2 << 20), kDesktop = caches(32 << 10, 256 << 10);

ProductSize square(std::int64_t n, std::int64_t kc) {
  const std::int64_t largest = n < kc ? n : kc;
  return {
      .rows = n, .columns = n, .steps = n, .kc = largest, .k_boxes = (n + largest - 1) / largest};
}

}  // namespace

TEST_SUITE("exec") {
  TEST_CASE("square products are cut along rows, into tasks that divide evenly") {
    for (const std::int64_t n : {256, 512, 1024, 2048, 4096}) {
      const Blocks blocks = choose_blocks(square(n, 512), kWide, kServer);
      CAPTURE(n);
      CHECK(blocks.cut == Cut::rows);
      const std::int64_t tasks = (n + blocks.mc - 1) / blocks.mc;
      CHECK(tasks % (n > 1024 ? 4 : 2) == 0);
      CHECK((tasks <= exec::kTasks || n > 1024));
      CHECK(blocks.nc == 128);
    }
  }

  TEST_CASE("a block of a fits its part of L2, and is never thinner than a few tiles") {
    for (const TileSize& tile : {kWide, kNarrow}) {
      for (const Machine& machine : {kServer, kDesktop}) {
        for (const std::int64_t n : {1024, 4096, 100000}) {
          const ProductSize product = square(n, 512);
          const Blocks blocks = choose_blocks(product, tile, machine);
          const std::int64_t bytes = blocks.mc * product.kc * product.element_bytes;
          CHECK((bytes <= machine.l2_bytes / 6 || blocks.mc <= 4 * tile.mr));
          CHECK(blocks.mc > 3 * tile.mr);
          CHECK(blocks.nc % tile.nr == 0);
          CHECK(blocks.nc >= tile.nr);
        }
      }
    }
  }

  TEST_CASE("a box of c that an epilogue meets fits its part of L2, however short the sum") {
    for (const TileSize& tile : {kWide, kNarrow}) {
      for (const Machine& machine : {kServer, kDesktop}) {
        for (const std::int64_t k : {3, 64, 512}) {
          for (const std::int64_t batch : {1, 8}) {
            for (const std::int64_t columns : {40, 1000, 100000}) {
              const ProductSize product{.rows = 20000,
                                        .columns = columns,
                                        .steps = k,
                                        .batch = batch,
                                        .kc = k,
                                        .epilogue = true};
              const Blocks blocks = choose_blocks(product, tile, machine);
              CAPTURE(blocks.mc);
              CAPTURE(blocks.nc);
              const std::int64_t box = blocks.mc * std::min(blocks.nc, columns) * 4;
              CHECK((box <= machine.l2_bytes / 4 || blocks.mc == 4 * tile.mr));
              CHECK(4 * tile.mr * blocks.nc * 4 <= machine.l2_bytes / 4);
              CHECK(blocks.nc % tile.nr == 0);
            }
          }
        }
      }
    }
  }

  TEST_CASE("only a small b of whole vectors is left unpacked, and only where it lies plainly") {
    ProductSize product = square(512, 512);
    CHECK(choose_blocks(product, kWide, kServer).pack_b);
    product.plain_b = true;
    CHECK_FALSE(choose_blocks(product, kWide, kServer).pack_b);
    CHECK(choose_blocks(product, kWide, kDesktop).pack_b);
    product.columns = 511;
    CHECK(choose_blocks(product, kWide, kServer).pack_b);
    ProductSize larger = square(1024, 512);
    larger.plain_b = true;
    CHECK(choose_blocks(larger, kWide, kServer).pack_b);
  }

  TEST_CASE("a b that packing transposes is shared out, where a need not be packed") {
    ProductSize product = square(256, 512);
    product.plain_a_stride = 256;
    const Blocks turned = choose_blocks(product, kWide, kServer);
    CHECK(turned.cut == Cut::columns);
    CHECK_FALSE(turned.pack_a);
    CHECK(turned.pack_b);
    product.plain_b = true;
    CHECK(choose_blocks(product, kWide, kServer).cut == Cut::rows);
    product.plain_b = false;
    product.plain_a_stride = 1024;  // rows in one set of L1
    CHECK(choose_blocks(product, kWide, kServer).cut == Cut::rows);
    product.plain_a_stride = 0;
    CHECK(choose_blocks(product, kWide, kServer).cut == Cut::rows);
  }

  TEST_CASE("few rows read a b of any size where it lies, more of them pack it") {
    ProductSize product{.rows = 37,
                        .columns = 1111,
                        .steps = 509,
                        .kc = 509,
                        .plain_b = true,
                        .plain_a_stride = 509};
    const Blocks few = choose_blocks(product, kWide, kServer);
    CHECK(few.cut == Cut::columns);
    CHECK_FALSE(few.pack_b);
    product.rows = 4 * kWide.mr + 1;
    const Blocks more = choose_blocks(product, kWide, kServer);
    CHECK(more.cut == Cut::columns);
    CHECK(more.pack_b);
    product.rows = 37;
    product.plain_b = false;
    CHECK(choose_blocks(product, kWide, kServer).pack_b);
  }

  TEST_CASE("few columns leave rows of a unpacked, unless they share a set of L1") {
    ProductSize heads{.rows = 512, .columns = 64, .steps = 512, .batch = 24, .kc = 512};
    CHECK(choose_blocks(heads, kWide, kServer).pack_a);
    heads.plain_a_stride = 512;
    CHECK_FALSE(choose_blocks(heads, kWide, kServer).pack_a);
    heads.plain_a_stride = 2048;
    CHECK(choose_blocks(heads, kWide, kServer).pack_a);
    heads.plain_a_stride = 512;
    heads.columns = 1000;
    CHECK(choose_blocks(heads, kWide, kServer).pack_a);
  }

  TEST_CASE("short wide products are cut along columns") {
    const ProductSize wide{.rows = 37, .columns = 1111, .steps = 509, .kc = 509};
    CHECK(choose_blocks(wide, kWide, kServer).cut == Cut::columns);
    const ProductSize wider{.rows = 256, .columns = 8192, .steps = 512, .kc = 512};
    CHECK(choose_blocks(wider, kWide, kServer).cut == Cut::columns);
    // All of a is to stay in L2 then.
    const ProductSize too_tall{.rows = 2048, .columns = 65536, .steps = 512, .kc = 512};
    CHECK(choose_blocks(too_tall, kWide, kServer).cut == Cut::rows);
    const ProductSize tall{.rows = 1111, .columns = 37, .steps = 509, .kc = 509};
    CHECK(choose_blocks(tall, kWide, kServer).cut == Cut::rows);
  }

  TEST_CASE("many matrices are tasks of their own, large ones are not") {
    ProductSize heads{.rows = 512, .columns = 512, .steps = 64, .batch = 24, .kc = 64};
    CHECK(choose_blocks(heads, kWide, kServer).cut == Cut::batch);
    heads.batch = 2;
    CHECK(choose_blocks(heads, kWide, kServer).cut == Cut::rows);
    ProductSize large = square(2048, 512);
    large.batch = 24;
    CHECK(choose_blocks(large, kWide, kServer).cut == Cut::rows);
  }

  TEST_CASE("a small matrix under a long sum is cut along the sum and stays whole") {
    const ProductSize sum{.rows = 100, .columns = 60, .steps = 100000, .kc = 512, .k_boxes = 196};
    const Blocks blocks = choose_blocks(sum, kWide, kServer);
    CHECK(blocks.cut == Cut::sums);
    CHECK(blocks.mc == 100);
    CHECK(blocks.nc == 60);
  }

  TEST_CASE("tiny products are one task") {
    const ProductSize tiny{.rows = 20, .columns = 20, .steps = 20, .kc = 20};
    const Blocks blocks = choose_blocks(tiny, kWide, kServer);
    CHECK(blocks.mc >= 20);
    CHECK(blocks.nc >= 20);
  }

  TEST_CASE("columns scattered in memory are taken in large boxes") {
    ProductSize product = square(1024, 512);
    product.scattered_columns = true;
    CHECK(choose_blocks(product, kWide, kServer).nc == 256);
  }
}
