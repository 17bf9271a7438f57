// SPDX-License-Identifier: Apache-2.0
#include "integrations/slurm/decide.h"

#include "integrations/slurm/node.h"
#include "model/json.h"
#include "model/json_text.h"
#include "model/number.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace berth::slurm {

namespace {

using model::NodeState;
using model::SchedulingState;
using nlohmann::json;

// The figures that berth wants to be read in Slurm.
struct Wanted {
  std::uint32_t score = 0;  // 0..kWeightRange
  std::uint64_t best_effort_cpus = 0;
  std::uint64_t best_effort_gib = 0;
  std::string state;   // the worse one of both resources, or "silent"
  std::string reason;  // why the host takes no work; empty while it does
};

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr Version kFirstWithExtra{22, 5};

// Tolerates the last bit of a difference: 14 - 1e-15 cores are 14.
std::uint64_t whole(double amount) {
  return static_cast<std::uint64_t>(std::clamp(std::floor(amount + 1e-9), 0.0, double{kMaxBestEffortCpus}));
}

void add_closed(std::string& reason, const char* name, const model::NodeResource& resource) {
  if (resource.state == SchedulingState::schedule) return;
  reason += fmt::format("{}{} {}, {:.0f} % in use", reason.empty() ? fmt::format("{} ", kReasonPrefix) : "; ",
                        name, model::to_string(resource.state), 100 * resource.utilisation);
}

Wanted wanted_of(const Berth& berth, const Settings& settings) {
  Wanted wanted;
  if (!berth.state) {
    // Neither good nor bad: nothing is known about it.
    wanted.score = kWeightRange / 2;
    wanted.state = "silent";
    return wanted;
  }
  const NodeState& state = *berth.state;
  add_closed(wanted.reason, "cpu", state.cpu);
  add_closed(wanted.reason, "memory", state.memory);
  wanted.state = model::to_string(std::max(state.cpu.state, state.memory.state));
  wanted.score = static_cast<std::uint32_t>(std::lround(state.score * kWeightRange));
  wanted.best_effort_cpus = whole(state.cpu.for_best_effort());
  wanted.best_effort_gib = whole(state.memory.for_best_effort() / kGiB);
  // Nothing else keeps work away then.
  if (!settings.drain && !wanted.reason.empty()) wanted.best_effort_cpus = wanted.best_effort_gib = 0;
  return wanted;
}

// The present score stays where the wanted one is near: a weight that changes at each run tells Slurm
// nothing.
std::uint32_t settled_score(const Node& node, std::uint32_t wanted, const Settings& settings) {
  if (!settings.weight || node.weight < settings.base_weight) return wanted;
  const std::uint32_t present = node.weight - settings.base_weight;
  if (present > kWeightRange) return wanted;
  const std::uint32_t distance = present > wanted ? present - wanted : wanted - present;
  return distance < kWeightStep ? present : wanted;
}

// The extra text with berth's own members in it; nullopt where it must stay: it is no JSON object, or too
// long.
std::optional<std::string> extra_with(const std::optional<std::string>& present, const Wanted& wanted) {
  json document = json::object();
  if (present && !present->empty() && *present != "(null)") {
    if (present->size() > kMaxExtraBytes) return std::nullopt;
    document = model::json_or_discarded(*present);
    if (!document.is_object()) return std::nullopt;
  }
  document["berth_state"] = wanted.state;
  document["berth_becpu"] = wanted.best_effort_cpus;
  document["berth_be_memory_gib"] = wanted.best_effort_gib;
  document["berth_score"] = wanted.score;
  std::string text = model::json_text(document);
  if (text.size() > kMaxExtraBytes) return std::nullopt;
  return text;
}

bool is_own(const std::optional<std::string>& reason) { return reason && reason->starts_with(kReasonPrefix); }

Service service_of(const Node& node, const Wanted& wanted) {
  if (!wanted.reason.empty()) return node.takes_no_work() ? Service::keep : Service::drain;
  // Slurm refuses to resume a node whose registration it does not accept.
  const bool own = node.drained() && is_own(node.reason) && !node.has_flag("INVALID_REG");
  return own ? Service::resume : Service::keep;
}

}  // namespace

bool Update::empty() const { return *this == Update(); }

std::optional<std::uint64_t> configured_too_low(const Node& node, const std::string& gres_name) {
  if (!node.has_flag("INVALID_REG") || !node.reason) return std::nullopt;
  const std::string start = fmt::format("gres/{} count reported lower than configured (", gres_name);
  const std::size_t at = node.reason->find(start);
  if (at == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(*node.reason).substr(at + start.size());
  return model::to_number<std::uint64_t>(rest.substr(0, rest.find(' ')));
}

Update decide(const Node& node, const Berth& berth, const Settings& settings) {
  Wanted wanted = wanted_of(berth, settings);
  wanted.score = settled_score(node, wanted.score, settings);
  if (const auto most = configured_too_low(node, settings.gres_name))
    wanted.best_effort_cpus = std::min(wanted.best_effort_cpus, *most);

  Update update;
  if (const std::uint32_t weight = settings.base_weight + wanted.score;
      settings.weight && weight != node.weight)
    update.weight = weight;
  if (settings.gres && count_of(node.gres, settings.gres_name) != wanted.best_effort_cpus)
    update.gres = with_count(node.gres, settings.gres_name, wanted.best_effort_cpus);
  if (settings.extra && node.version >= kFirstWithExtra && node.extra_is_clear) {
    auto extra = extra_with(node.extra, wanted);
    if (extra && extra != node.extra) update.extra = std::move(extra);
  }
  if (settings.drain) {
    update.service = service_of(node, wanted);
    const bool leftover = update.service == Service::keep && !node.takes_no_work() && is_own(node.reason);
    if (update.service == Service::drain) update.reason = wanted.reason;
    if (update.service == Service::resume || leftover) update.reason = kResumedReason;
  }
  return update;
}

std::vector<std::string> arguments_of(const std::string& node, const Update& update) {
  std::vector<std::string> words{"update", "NodeName=" + node};
  if (update.weight) words.push_back(fmt::format("Weight={}", *update.weight));
  if (update.gres) words.push_back("Gres=" + *update.gres);
  if (update.extra) words.push_back("Extra=" + *update.extra);
  if (update.service == Service::drain) words.emplace_back("State=DRAIN");
  // Unlike RESUME, this leaves a node down that is down for another reason.
  if (update.service == Service::resume) words.emplace_back("State=UNDRAIN");
  if (!update.reason.empty()) words.push_back("Reason=" + update.reason);
  return words;
}

std::string describe(const Node& node, const Update& update) {
  std::vector<std::string> parts;
  if (update.weight) parts.push_back(fmt::format("weight {} -> {}", node.weight, *update.weight));
  if (update.gres) {
    std::string present;
    for (const std::string& entry : node.gres) present += (present.empty() ? "" : ",") + entry;
    parts.push_back(fmt::format("gres {} -> {}", present.empty() ? "none" : present, *update.gres));
  }
  if (update.extra) parts.push_back("extra " + *update.extra);
  if (update.service == Service::drain) parts.push_back(fmt::format("drained ({})", update.reason));
  if (update.service == Service::resume) parts.emplace_back("resumed");
  if (update.service == Service::keep && !update.reason.empty())
    parts.emplace_back("reason of an ended drain removed");
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

}  // namespace berth::slurm
