// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/topology.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::policies {

// The links between the GPUs of a host, by rows: one row for each GPU with a link.
class GpuLinks {
 public:
  explicit GpuLinks(const std::vector<model::Gpu>& gpus);

  // Whether any link is known.
  bool any() const { return !rows_.empty(); }
  // nullopt for a GPU without links.
  std::optional<std::size_t> row_of(const std::string& gpu) const;
  // Of two rows; nullopt where it is not known.
  std::optional<model::GpuLink> between(std::size_t a, std::size_t b) const {
    return links_[a * rows_.size() + b];
  }

 private:
  std::map<std::string, std::size_t> rows_;  // at most model::kMostLinkedGpus
  std::vector<std::optional<model::GpuLink>> links_;
};

// How far two GPUs with this link are from each other. The figures follow the scores of NVIDIA's allocator
// for Kubernetes (go-gpuallocator), which are 100 for one NVLink and 50, 40, 30, 20, 10 for PIX to SYS: the
// distance is 100 less the score, in tens.
int distance_of(model::GpuLink link);

}  // namespace berth::policies
