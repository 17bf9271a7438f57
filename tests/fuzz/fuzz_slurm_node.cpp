// SPDX-License-Identifier: Apache-2.0
// Answers of scontrol, with free texts of operators in them: an answer is refused in one line, or gives a
// change whose words are short, and keep every resource of others. Only berth's own drain is ended.
#include "integrations/slurm/decide.h"
#include "integrations/slurm/node.h"
#include "tests/fuzz/property.h"

#include <string>

namespace {

berth::slurm::Berth berth_says(bool takes_work) {
  berth::model::NodeState state;
  state.score = 0.25;
  state.cpu.advertised = 7;
  if (!takes_work) state.cpu.state = berth::model::SchedulingState::no_schedule;
  return {.state = state, .silence = {}};
}

void check(const berth::slurm::Node& node, const berth::slurm::Berth& berth) {
  const auto update = berth::slurm::decide(node, berth, {});
  for (const std::string& word : berth::slurm::arguments_of("n1", update))
    fuzz::require(word.size() < 16384 && word.find('\0') == std::string::npos, "an argument is short text");
  if (update.gres) {
    for (const std::string& entry : node.gres) {
      if (entry.rfind("becpu", 0) != 0)
        fuzz::require(update.gres->find(entry.substr(0, entry.find('('))) != std::string::npos,
                      "no resource is lost");
    }
  }
  using berth::slurm::Service;
  const bool own = node.reason && node.reason->rfind("berth:", 0) == 0;
  fuzz::require(update.service != Service::resume || (node.drained() && own),
                "only berth's own drain is ended");
  fuzz::require(update.service != Service::drain || !node.drained(), "a drained node is not drained again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto node = berth::slurm::parse_node(fuzz::text_of(data, size), "n1");
  if (!node) {
    fuzz::require_line(node.error().message());
    return 0;
  }
  fuzz::require(node->gres.size() <= berth::slurm::kMaxGresEntries, "resources are limited");
  check(*node, berth_says(true));
  check(*node, berth_says(false));
  check(*node, {.state = std::nullopt, .silence = "silent"});
  return 0;
}
