// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/gpus.h"

#include "model/bytes_text.h"
#include "model/count_text.h"
#include "model/glob.h"
#include "policies/placement/nearest.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
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

// As indices.
std::vector<std::size_t> suitable_gpus(const Bin& bin, const model::PendingWorkload& request) {
  std::vector<std::size_t> suitable;
  for (std::size_t index = 0; index < bin.gpus.size(); ++index) {
    if (verdict_on(bin.gpus[index], request) == Verdict::fits) suitable.push_back(index);
  }
  return suitable;
}

std::optional<model::GpuLink> link_of(const Bin& bin, const BinGpu& a, const BinGpu& b) {
  if (!bin.links || !a.links_row || !b.links_row) return std::nullopt;
  return bin.links->between(*a.links_row, *b.links_row);
}

int distance_between(const Bin& bin, std::size_t a, std::size_t b) {
  const BinGpu& first = bin.gpus[a];
  const BinGpu& second = bin.gpus[b];
  const auto within = first.numa == second.numa ? model::GpuLink::node : model::GpuLink::sys;
  return distance_of(link_of(bin, first, second).value_or(within));
}

// Keeps `count` of the suitable ones that come in order. Tiers are taken whole as long as they fit; the tier
// that does not fit gives those that are nearest to each other and to the GPUs of the tiers before it.
template <typename TierOf>
void keep_nearest(const Bin& bin, TierOf tier_of, std::size_t count, std::vector<std::size_t>& suitable) {
  auto begin = suitable.begin();
  auto end = begin;
  while (end != suitable.end()) {
    begin = end;
    end = std::find_if(begin, suitable.end(),
                       [&](std::size_t index) { return tier_of(index) != tier_of(*begin); });
    if (static_cast<std::size_t>(end - suitable.begin()) >= count) break;
  }
  const std::vector<std::size_t> taken(suitable.begin(), begin);
  const std::vector<std::size_t> tier(begin, end);
  std::vector<int> to_taken(tier.size());
  for (std::size_t i = 0; i < tier.size(); ++i) {
    for (const std::size_t other : taken) to_taken[i] += distance_between(bin, tier[i], other);
  }
  const auto distance = [&](std::size_t a, std::size_t b) { return distance_between(bin, tier[a], tier[b]); };
  suitable.resize(taken.size());
  for (const std::size_t chosen : nearest(tier.size(), count - taken.size(), distance, to_taken))
    suitable.push_back(tier[chosen]);
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
  fitting = suitable_gpus(bin, request);
  if (std::ssize(fitting) <= request.gpus) return fitting;
  std::map<int, int> rank_of;  // of a NUMA node: the more suitable ones, the lower
  for (const std::size_t index : fitting) --rank_of[bin.gpus[index].numa];
  const auto tier_of = [&](std::size_t index) {
    const BinGpu& gpu = bin.gpus[index];
    return std::tuple(rank_of[gpu.numa], gpu.numa, gpu.idle());
  };
  std::sort(fitting.begin(), fitting.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(tier_of(a), bin.gpus[a].free_bytes, a) <
           std::tuple(tier_of(b), bin.gpus[b].free_bytes, b);
  });
  const auto wanted = static_cast<std::size_t>(request.gpus);
  if (bin.links && wanted > 1 && wanted <= model::kMostLinkedGpus) {
    keep_nearest(bin, tier_of, wanted, fitting);
  } else {
    fitting.resize(wanted);
  }
  std::sort(fitting.begin(), fitting.end());
  return fitting;
}

Linkage linkage_of(const Bin& bin, const std::vector<std::size_t>& gpus) {
  Linkage linkage;
  if (!bin.links || gpus.size() > model::kMostLinkedGpus) {
    const auto each = bin.nodes.size() > 1 ? model::GpuLink::sys : model::GpuLink::node;
    const auto count = static_cast<double>(gpus.size());
    linkage.distance = count * (count - 1) / 2 * distance_of(each);
    return linkage;
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      linkage.distance += distance_between(bin, gpus[i], gpus[j]);
      if (const auto link = link_of(bin, bin.gpus[gpus[i]], bin.gpus[gpus[j]])) ++linkage.pairs[*link];
    }
  }
  return linkage;
}

std::string describe_linkage(const Linkage& linkage, std::size_t gpus) {
  if (linkage.pairs.empty()) return {};
  const std::size_t pairs = gpus * (gpus - 1) / 2;
  const auto& [first, of_first] = *linkage.pairs.begin();
  if (static_cast<std::size_t>(of_first) == pairs)
    return fmt::format("{}GPUs linked by {}", pairs > 1 ? "all " : "", model::to_string(first));
  std::string text = fmt::format("of {} pairs of GPUs", pairs);
  const char* separator = " ";
  for (const auto& [link, count] : linkage.pairs) {
    text += fmt::format("{}{} linked by {}", separator, count, model::to_string(link));
    separator = ", ";
  }
  return text;
}

std::string describe_missing_gpus(const Bin& bin, const model::PendingWorkload& request) {
  const std::string asked = "asks " + model::count_text(request.gpus, "GPU");
  if (bin.gpus.empty())
    return asked + (bin.nodes.size() == 1 ? "; this NUMA node has none" : "; these NUMA nodes have none");
  std::array<int, 7> counts{};
  for (const BinGpu& gpu : bin.gpus) ++counts[static_cast<std::size_t>(verdict_on(gpu, request))];
  std::string text = fmt::format("{}; suitable here: {} of {}", asked, counts[0], bin.gpus.size());
  const std::string memory = model::bytes_in_four_digits(request.gpu_memory_bytes);
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
