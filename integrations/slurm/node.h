// SPDX-License-Identifier: Apache-2.0
// A node of Slurm, as `scontrol show node` prints it. The text is hostile: reasons, comments and extra texts
// are free text of Slurm's operators, and may contain line breaks.
#pragma once

#include "model/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::slurm {

inline constexpr std::size_t kMaxNodeNameBytes = 255;
inline constexpr std::size_t kMaxLineBytes = 8192;
inline constexpr std::size_t kMaxGresEntries = 256;

// Why `name` cannot be the name of one node: letters, digits, dots, hyphens and underscores alone, so it is
// no list of hosts. "ALL" names all nodes in an update. nullopt for a good name.
std::optional<std::string> why_no_node_name(std::string_view name);

// Slurm's version: 22.05 is {22, 5}.
struct Version {
  int major = 0;
  int minor = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};

struct Node {
  std::string name;
  std::string base_state;          // "IDLE", "MIXED", "DOWN"
  std::vector<std::string> flags;  // "DRAIN", "INVALID_REG"
  std::uint32_t weight = 0;
  std::vector<std::string> gres;   // entries as shown, such as "gpu:a100:4(S:0-1)"
  std::optional<Version> version;  // of its slurmd; nullopt before that has registered
  // Without the user and the time at its end; nullopt where there is none, and where it cannot be told apart
  // from other free text, as two lines look like it.
  std::optional<std::string> reason;
  std::optional<std::string> extra;
  bool extra_is_clear = true;  // false where `extra` cannot be told apart

  bool has_flag(std::string_view flag) const;
  // Slurm starts no work on it, for a reason of its own or for one that was given.
  bool takes_no_work() const;
  // It is being drained, or drained.
  bool drained() const;
};

// Reads the answer about the node `name`, several lines (without --oneliner). Figures that come after free
// text are not believed: Slurm prints them first. Error invalid_input, also for another node's answer.
model::Result<Node> parse_node(std::string_view text, std::string_view name);

// The number of the resource `name` in the entries of a node: "becpu:14", also "becpu:1K". 0 without such an
// entry: Slurm shows no resource of which there are 0. nullopt for an entry that has a type or no number, and
// for several.
std::optional<std::uint64_t> count_of(const std::vector<std::string>& entries, std::string_view name);

// The list for an update: all other entries in their order, and `name:count` in place of its own first one,
// or at the end. "(S:0-1)", the sockets that Slurm shows, is left out: Slurm knows them, and takes them back.
std::string with_count(const std::vector<std::string>& entries, std::string_view name, std::uint64_t count);

}  // namespace berth::slurm
