// SPDX-License-Identifier: Apache-2.0
// The change of a node against the sentences of berth-slurm(8), said again one by one.
#include "integrations/slurm/decide.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::slurm {
namespace {

using model::SchedulingState;

model::NodeResource any_resource() {
  model::NodeResource resource;
  resource.state = *rc::gen::element(SchedulingState::schedule, SchedulingState::schedule,
                                     SchedulingState::no_schedule, SchedulingState::evict);
  resource.advertised = *rc::gen::inRange(0, 4000) / 10.0;
  resource.requested_latency_sensitive = *rc::gen::inRange(0, 4000) / 10.0;
  return resource;
}

Berth any_berth() {
  if (*rc::gen::inRange(0, 5) == 0) return {.state = std::nullopt, .silence = "silent"};
  model::NodeState state;
  state.score = *rc::gen::inRange(0, 1001) / 1000.0;
  state.cpu = any_resource();
  state.memory = any_resource();
  return {.state = state, .silence = {}};
}

Node any_node() {
  Node node;
  node.name = "n1";
  node.base_state = *rc::gen::element<std::string>("IDLE", "MIXED", "ALLOCATED", "DOWN");
  if (*rc::gen::inRange(0, 2) == 0) node.flags.emplace_back("DRAIN");
  if (*rc::gen::inRange(0, 8) == 0) node.flags.emplace_back("INVALID_REG");
  node.weight = *rc::gen::inRange<std::uint32_t>(0, 250);
  if (*rc::gen::inRange(0, 2) == 0) node.gres.emplace_back("gpu:a100:2(S:0,1)");
  if (*rc::gen::inRange(0, 2) == 0) node.gres.push_back("becpu:" + std::to_string(*rc::gen::inRange(0, 400)));
  if (*rc::gen::inRange(0, 2) == 0)
    node.reason = *rc::gen::element<std::string>("berth: cpu", "berth:", "broken", "a berth:");
  return node;
}

// The node as Slurm has it after the update.
Node after(Node node, const Update& update) {
  if (update.weight) node.weight = *update.weight;
  if (update.gres) {
    node.gres.clear();
    std::size_t at = 0;
    for (std::size_t comma = 0; comma != std::string::npos; at = comma + 1) {
      comma = update.gres->find(',', at);
      node.gres.push_back(update.gres->substr(at, comma == std::string::npos ? comma : comma - at));
    }
  }
  if (update.service == Service::drain) {
    node.flags.emplace_back("DRAIN");
    node.reason = update.reason;
  }
  if (update.service == Service::resume) {
    node.flags.erase(std::find(node.flags.begin(), node.flags.end(), "DRAIN"));
    node.reason = update.reason;
  }
  if (update.service == Service::keep && !update.reason.empty()) node.reason = update.reason;
  return node;
}

RC_GTEST_PROP(SlurmDecideProperty, IsWhatThePageSays, ()) {
  const Node node = any_node();
  const Berth berth = any_berth();
  const Settings settings{.base_weight = *rc::gen::element(1U, 100U)};
  const Update update = decide(node, berth, settings);
  const Node then = after(node, update);

  // The weight is the base plus a hundred times the score, or less than 5 away from it.
  const double score = berth.state ? berth.state->score : 0.5;
  RC_ASSERT(std::abs(then.weight - (settings.base_weight + 100 * score)) <= 5);
  // The resource is a whole number of cores: advertised less asked for, and 0 of a silent berthd.
  const double left =
      berth.state ? berth.state->cpu.advertised - berth.state->cpu.requested_latency_sensitive : 0;
  const std::string own = "becpu:" + std::to_string(static_cast<int>(left > 0 ? left + 1e-9 : 0));
  const auto is_resource = [](const std::string& it) { return it.rfind("becpu:", 0) == 0; };
  const auto entries = std::count_if(then.gres.begin(), then.gres.end(), is_resource);
  // Slurm shows no entry of a resource of which there are 0.
  const bool shown = std::count(then.gres.begin(), then.gres.end(), own) == 1 && entries == 1;
  RC_ASSERT(shown || (own == "becpu:0" && entries == 0));
  // No resource of others is lost.
  const auto is_gpu = [](const std::string& it) { return it.rfind("gpu:a100:2", 0) == 0; };
  RC_ASSERT(std::count_if(then.gres.begin(), then.gres.end(), is_gpu) ==
            std::count_if(node.gres.begin(), node.gres.end(), is_gpu));
  // A host that takes no work is drained or down. A drain of others stays, and one of berth's ends with its
  // cause.
  const bool takes_work = !berth.state || (berth.state->cpu.state == SchedulingState::schedule &&
                                           berth.state->memory.state == SchedulingState::schedule);
  const bool own_drain = node.drained() && node.reason && node.reason->rfind("berth:", 0) == 0;
  RC_CLASSIFY(!takes_work, "takes no work");
  RC_CLASSIFY(own_drain, "drained by berth");
  if (!takes_work) RC_ASSERT(then.takes_no_work());
  if (node.drained() && !own_drain) RC_ASSERT(update.service == Service::keep);
  if (takes_work && own_drain && !node.has_flag("INVALID_REG")) RC_ASSERT(!then.drained());
  if (takes_work && !node.drained()) RC_ASSERT(!then.drained());
  if (update.service == Service::drain) RC_ASSERT(then.reason->rfind("berth: ", 0) == 0);
  // A second run has nothing to do.
  RC_ASSERT(decide(then, berth, settings).empty());
}

}  // namespace
}  // namespace berth::slurm
