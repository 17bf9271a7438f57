// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/gpus.h"

#include "model/glob.h"
#include "policies/straggler/share.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include <fmt/core.h>

namespace berth::policies {

namespace {

enum class Verdict { fits, unhealthy, other_model, held, shared, little_memory, unknown_memory };

Verdict verdict_on(const BinGpu& gpu, const model::PendingWorkload& request) {
  if (!gpu.healthy) return Verdict::unhealthy;
  if (request.gpu_model && !model::glob_match(*request.gpu_model, gpu.model)) return Verdict::other_model;
  if (gpu.holder || gpu.promised) return Verdict::held;
  if (request.gpu_exclusive && gpu.users + gpu.promised_shares > 0) return Verdict::shared;
  // A request for no memory fits whatever is free.
  if (!gpu.free_bytes) return request.gpu_memory_bytes == 0 ? Verdict::fits : Verdict::unknown_memory;
  return *gpu.free_bytes < request.gpu_memory_bytes ? Verdict::little_memory : Verdict::fits;
}

}  // namespace

std::vector<std::size_t> choose_gpus(const Bin& bin, const model::PendingWorkload& request) {
  std::vector<std::size_t> fitting;
  if (!request.told_gpus.empty()) {
    for (std::size_t index = 0; index < bin.gpus.size(); ++index) {
      const auto& told = request.told_gpus;
      if (std::find(told.begin(), told.end(), bin.gpus[index].id) != told.end()) fitting.push_back(index);
    }
    return fitting;
  }
  for (std::size_t index = 0; index < bin.gpus.size(); ++index) {
    if (verdict_on(bin.gpus[index], request) == Verdict::fits) fitting.push_back(index);
  }
  std::map<int, int> rank_of;  // of a NUMA node: the more suitable ones, the lower
  for (const std::size_t index : fitting) --rank_of[bin.gpus[index].numa];
  std::sort(fitting.begin(), fitting.end(), [&](std::size_t a, std::size_t b) {
    const BinGpu& first = bin.gpus[a];
    const BinGpu& second = bin.gpus[b];
    return std::tuple(rank_of[first.numa], first.numa, first.idle(), first.free_bytes, a) <
           std::tuple(rank_of[second.numa], second.numa, second.idle(), second.free_bytes, b);
  });
  if (std::ssize(fitting) > request.gpus) fitting.resize(static_cast<std::size_t>(request.gpus));
  std::sort(fitting.begin(), fitting.end());
  return fitting;
}

std::string describe_missing_gpus(const Bin& bin, const model::PendingWorkload& request) {
  const std::string asked = fmt::format("asks {} GPU{}", request.gpus, request.gpus == 1 ? "" : "s");
  if (bin.gpus.empty())
    return asked + (bin.nodes.size() == 1 ? "; this NUMA node has none" : "; these NUMA nodes have none");
  std::array<int, 7> counts{};
  for (const BinGpu& gpu : bin.gpus) ++counts[static_cast<std::size_t>(verdict_on(gpu, request))];
  std::string text = fmt::format("{}; suitable here: {} of {}", asked, counts[0], bin.gpus.size());
  const std::string memory =
      amount_text(model::Resource::memory, static_cast<double>(request.gpu_memory_bytes));
  const std::array<std::string, 7> why{"",
                                       "unhealthy",
                                       "of another model",
                                       "held",
                                       "shared by others",
                                       "with less than " + memory + " free",
                                       "with an unknown amount of free memory"};
  for (std::size_t verdict = 1; verdict < why.size(); ++verdict) {
    if (counts[verdict] > 0) text += fmt::format(", {} {}", counts[verdict], why[verdict]);
  }
  return text;
}

}  // namespace berth::policies
