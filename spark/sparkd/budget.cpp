// SPDX-License-Identifier: Apache-2.0
#include "spark/sparkd/budget.h"

#include <algorithm>
#include <set>

namespace berth::spark {

void Budget::add(const Owner& owner, User user) { entries_.emplace(owner, Entry{.user = user, .bytes = 0}); }

void Budget::remove(const Owner& owner) {
  const auto entry = entries_.find(owner);
  if (entry == entries_.end()) return;
  taken_ -= entry->second.bytes;
  entries_.erase(entry);
}

std::size_t Budget::taken_by(User user) const {
  std::size_t bytes = 0;
  for (const auto& [owner, entry] : entries_)
    if (entry.user == user) bytes += entry.bytes;
  return bytes;
}

std::size_t Budget::share() const {
  std::set<User> users;
  for (const auto& [owner, entry] : entries_) users.insert(entry.user);
  return most_ / std::max<std::size_t>(users.size(), 1);
}

Budget::Answer Budget::take(const Owner& owner, std::size_t bytes) {
  const auto found = entries_.find(owner);
  if (found == entries_.end()) return {};
  Entry& mine = found->second;
  const std::size_t others = taken_ - mine.bytes;
  if (bytes <= mine.bytes || others + bytes <= most_) {
    taken_ = others + bytes;
    mine.bytes = bytes;
    return {.granted = true, .gives_way = {}};
  }
  const std::size_t share = this->share();
  if (taken_by(mine.user) - mine.bytes + bytes > share) return {};
  // Of the user that is furthest beyond its share, the driver with the most.
  std::map<User, std::size_t> by_user;
  for (const auto& [other, entry] : entries_) by_user[entry.user] += entry.bytes;
  const auto most = std::max_element(by_user.begin(), by_user.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  std::optional<Owner> largest;
  std::size_t its_bytes = 0;
  for (const auto& [other, entry] : entries_) {
    if (entry.user != most->first || entry.bytes <= its_bytes) continue;
    largest = other;
    its_bytes = entry.bytes;
  }
  return {.granted = false, .gives_way = largest};
}

}  // namespace berth::spark
