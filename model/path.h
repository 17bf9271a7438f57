// SPDX-License-Identifier: Apache-2.0
// Parts of paths, of cgroups above all: these are below the root of their tree, without a leading slash.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace berth::model {

// "c" of "a/b/c".
constexpr std::string_view last_component(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// "a/b" of "a/b/c"; empty of "a".
constexpr std::string_view parent_path(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

// Whether `path` is `outer` or lies in it.
constexpr bool is_within(std::string_view path, std::string_view outer) {
  return path == outer || (path.starts_with(outer) && path.substr(outer.size()).starts_with('/'));
}

// Whether `wanted` names the workload `id`: all of it, or its end behind a "/". A suffix ".service" or
// ".scope" may be left out.
constexpr bool names(std::string_view wanted, std::string_view id) {
  for (const std::string_view suffix :
       {std::string_view(".service"), std::string_view(".scope"), std::string_view()}) {
    if (!id.ends_with(suffix)) continue;
    const std::string_view stem = id.substr(0, id.size() - suffix.size());
    if (!stem.ends_with(wanted)) continue;
    const std::string_view before = stem.substr(0, stem.size() - wanted.size());
    if (before.empty() || before.ends_with('/')) return true;
  }
  return false;
}

}  // namespace berth::model
