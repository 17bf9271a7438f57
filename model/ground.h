// SPDX-License-Identifier: Apache-2.0
// One rule for all that a user can write about its own cgroups: it grants no privilege and no exemption.
#pragma once

#include <cstdint>
#include <optional>

namespace berth::model {

// The ways in which a cgroup speaks for itself.
enum class Word {
  name,   // its path, as rules, reservations and commands compare it
  mark,   // its extended attributes
  limit,  // cpu.max, memory.high and cpuset.cpus, as they were before berth
  write,  // changes of its control files, and those that it has not
};

// The part of the tree that a cgroup lies in, by its owner.
struct Ground {
  // The owner of the outermost group on the way to it that not only root may write to; nullopt: none is.
  std::optional<std::uint32_t> user = std::nullopt;
  // It is that outermost group itself. Root made and named it, and its control files are root's.
  bool outermost = false;

  friend bool operator==(const Ground&, const Ground&) = default;
};

// Whether such a word of the group may give it a privilege or an exemption: then it is root's word. Anything
// that only lowers the group may be believed in any case.
constexpr bool may_favour_itself(const Ground& ground, Word word) {
  return !ground.user || (ground.outermost && word != Word::mark);
}

}  // namespace berth::model
