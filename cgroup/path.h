// SPDX-License-Identifier: Apache-2.0
// Paths of cgroups below the root of their tree, without a leading slash.
#pragma once

#include <cstddef>
#include <string_view>

namespace berth::cgroup {

// "c" of "a/b/c".
constexpr std::string_view last_component(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// "a/b" of "a/b/c"; empty of "a".
constexpr std::string_view parent_path(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

}  // namespace berth::cgroup
