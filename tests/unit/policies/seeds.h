// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <rapidcheck.h>

namespace berth::policies::testing {

// A seed for random_case, out of the full range from the first case on. (rapidcheck would start with small
// numbers and repeat them.) It is not shrunk: a smaller seed is no simpler case.
inline rc::Gen<std::uint64_t> any_seed() {
  return rc::gen::noShrink(rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<std::uint64_t>()));
}

}  // namespace berth::policies::testing
