// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/path.h"

#include <string>
#include <type_traits>
#include <utility>

namespace berth::os {

// Calls `find` with `path`, then with each path above it, nearest first, until it finds something. Returns
// that; an empty value where `find` finds nothing, such as a null pointer. The root, "", is not asked for.
// `path` has no leading slash.
template <typename Find>
std::invoke_result_t<Find&, const std::string&> find_around(std::string path, Find find) {
  while (!path.empty()) {
    if (auto found = find(std::as_const(path))) return found;
    path.resize(model::parent_path(path).size());
  }
  return {};
}

}  // namespace berth::os
