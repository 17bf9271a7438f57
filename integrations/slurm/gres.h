// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::slurm {

// The number of the resource `name` in the entries of a node: "becpu:14", also "becpu:1K". 0 without such an
// entry: Slurm shows no resource of which there are 0. nullopt for an entry that has a type or no number, and
// for several.
std::optional<std::uint64_t> count_of(const std::vector<std::string>& entries, std::string_view name);

// The list for an update: all other entries in their order, and `name:count` in place of its own first one,
// or at the end. "(S:0-1)", the sockets that Slurm shows, is left out: Slurm knows them, and takes them back.
std::string with_count(const std::vector<std::string>& entries, std::string_view name, std::uint64_t count);

}  // namespace berth::slurm
