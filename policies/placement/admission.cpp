// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/admission.h"

#include "model/bytes_text.h"
#include "model/count_text.h"
#include "model/json.h"
#include "policies/placement/candidate.h"
#include "policies/placement/rank.h"
#include "policies/placement/wide.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using model::bytes_in_four_digits;
using model::Resource;
using model::SchedulingState;

void say_once(std::vector<std::string>& list, std::string text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

void open_resource(const Host& host, Resource resource, std::vector<std::string>& change) {
  const auto& said = resource == Resource::cpu ? host.advertised().cpu : host.advertised().memory;
  if (!said || said->state == SchedulingState::schedule) return;
  const double opens = host.settings().oversell.stop_threshold - kStopHysteresis;
  say_once(change, fmt::format("{} in use has to fall below {:.4g} % of the total (state {})",
                               resource == Resource::cpu ? "the CPU" : "the memory", 100 * opens,
                               model::to_string(said->state)));
}

// Whether no free vCPU helps, because no socket has as many.
bool larger_than_a_socket(const Host& host, const model::PendingWorkload& request) {
  return request.vcpus.value_or(0) > 0 &&
         !host.node().regions_for(*request.vcpus, host.settings().interference.allow_cross_socket);
}

// The change that would let the request into this bin, for its first lack.
void remedy(const Host& host, const Candidate& candidate, const model::PendingWorkload& request,
            std::vector<std::string>& change) {
  const Bin& bin = bin_of(host, candidate);
  const std::string nodes = model::nodes_text(bin.nodes);
  switch (candidate.lack) {
    case Lack::closed:
      open_resource(host, Resource::memory, change);
      open_resource(host, Resource::cpu, change);
      break;
    case Lack::cpu: {
      const double free = std::max(0.0, std::floor(host.free_cores(bin, request.workload_class) + 1e-9));
      const double missing = request.vcpus.value_or(0) - free;
      if (free < 1 || missing <= 0) {
        say_once(change, fmt::format("vCPUs have to become free on {}", nodes));
      } else {
        say_once(change,
                 fmt::format("ask for {} at most, or {:.0f} more have to become free on {}",
                             model::count_text(static_cast<std::uint64_t>(free), "vCPU"), missing, nodes));
      }
      break;
    }
    case Lack::memory: {
      const std::uint64_t free = host.free_memory_bytes();
      say_once(change, fmt::format("ask for {} of memory at most, or {} more has to become free",
                                   bytes_in_four_digits(free),
                                   bytes_in_four_digits(request.memory_request_bytes - free)));
      break;
    }
    case Lack::gpus:
      say_once(change, fmt::format("GPUs have to become free on {}, or ask for others: {}", nodes,
                                   describe_lack(host, candidate, request)));
      break;
    case Lack::vcpus_declared:
      say_once(change, "declare vcpus");
      break;
    case Lack::nothing:
      // By its figures the request fits, but the bin has no vCPUs near each other.
      if (larger_than_a_socket(host, request)) {
        say_once(change,
                 "ask for no more vCPUs than a socket has, or set interference.allow_cross_socket = true");
        break;
      }
      say_once(change,
               fmt::format("ask for fewer vCPUs, or latency-sensitive work has to free some that share "
                           "a cache on {}",
                           nodes));
      break;
  }
}

void refuse(const Host& host, const model::PendingWorkload& newcomer, model::Admission& answer) {
  for (std::size_t bin = 0; bin < host.bins().size(); ++bin)
    remedy(host, consider(host, 0, bin, newcomer), newcomer, answer.change);
  if (const auto all = all_nodes(host, 0, newcomer)) remedy(host, *all, newcomer, answer.change);
  if (!host.open()) {
    answer.reason = host.closed() + ": it takes no new work";
    return;
  }
  for (const model::RejectedBin& rejected : answer.bins.rejected) {
    if (!answer.reason.empty()) answer.reason += "; ";
    answer.reason += fmt::format("{}: {}", model::nodes_text(model::nodes_of(rejected)), rejected.reason);
  }
}

}  // namespace

model::Admission admit(Host& host, const model::PendingWorkload& newcomer) {
  model::Admission answer;
  answer.host = host.name();
  answer.request = newcomer;
  const Host before = host;
  answer.bins = take_best(host, {newcomer}).at(newcomer.id);
  answer.admitted = !answer.bins.fitting.empty();
  if (answer.admitted) {
    answer.reason = answer.bins.fitting.front().reason;
  } else {
    refuse(before, newcomer, answer);
  }
  return answer;
}

}  // namespace berth::policies
