// SPDX-License-Identifier: Apache-2.0
// The change of a node's record in Slurm that follows from the state of its berth (berth-slurm(8)). Pure.
#pragma once

#include "integrations/berth.h"
#include "integrations/slurm/node.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::slurm {

// The reason of every drain by berth begins so. Only such a drain is ended.
inline constexpr std::string_view kReasonPrefix = "berth:";
// Slurm 24.11 keeps the reason of a drain after its end, and a later drain of Slurm's own would have it too.
// So a drain ends with this reason, which is not berth's.
inline constexpr std::string_view kResumedReason = "resumed by berth";
// An extra text that is longer, before or after the change, stays as it is.
inline constexpr std::size_t kMaxExtraBytes = 2048;
// The weight of a node is the base and up to this.
inline constexpr std::uint32_t kWeightRange = 100;
// A weight is kept while it is less than this away from the wanted one.
inline constexpr std::uint32_t kWeightStep = 5;
// No node has more of the resource.
inline constexpr std::uint64_t kMaxBestEffortCpus = 1'000'000;

struct Settings {
  std::string gres_name = "becpu";
  std::uint32_t base_weight = 1;
  bool weight = true;
  bool gres = true;
  bool drain = true;
  bool extra = true;
};

using integrations::Berth;

enum class Service { keep, drain, resume };

// Only the members that differ from the node's record are set.
struct Update {
  std::optional<std::uint32_t> weight;
  std::optional<std::string> gres;  // the whole list
  std::optional<std::string> extra;
  Service service = Service::keep;
  std::string reason;  // "" leaves it alone

  bool empty() const;
  friend bool operator==(const Update&, const Update&) = default;
};

Update decide(const Node& node, const Berth& berth, const Settings& settings);

// The arguments of scontrol for a change that is not empty: "update", "NodeName=n1", ...
std::vector<std::string> arguments_of(const std::string& node, const Update& update);

// The change in words: "weight 1 -> 34, gres becpu:8 -> becpu:14, drained (berth: ...)".
std::string describe(const Node& node, const Update& update);

// slurm.conf has fewer of the resource than were published, and Slurm drained the node for it: the number
// that slurm.conf has. Slurm says so in its reason alone. nullopt otherwise.
std::optional<std::uint64_t> configured_too_low(const Node& node, const std::string& gres_name);

}  // namespace berth::slurm
