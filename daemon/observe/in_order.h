// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth::daemon {

// Looks up keys in a sorted map, in ascending order: one pass over the map in all. find() would compare long
// paths with a common beginning some ten times each.
template <typename Map>
class InOrder {
 public:
  explicit InOrder(const Map& map) : at_(map.begin()), end_(map.end()) {}
  InOrder(Map&&) = delete;

  // nullptr where the map has no such key.
  const typename Map::mapped_type* find(const typename Map::key_type& key) {
    while (at_ != end_) {
      const int order = at_->first.compare(key);
      if (order == 0) return &at_->second;
      if (order > 0) break;
      ++at_;
    }
    return nullptr;
  }
  // The same where `is_it` tells the value of `key` from others, at less cost than comparing keys.
  template <typename Predicate>
  const typename Map::mapped_type* find(const typename Map::key_type& key, Predicate is_it) {
    // Most often it is the one after the last one.
    if (at_ != end_ && is_it(at_->second)) return &(at_++)->second;
    const auto* found = find(key);
    return found != nullptr && is_it(*found) ? found : nullptr;
  }

 private:
  typename Map::const_iterator at_;
  typename Map::const_iterator end_;
};

}  // namespace berth::daemon
