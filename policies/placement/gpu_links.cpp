// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/gpu_links.h"

namespace berth::policies {

GpuLinks::GpuLinks(const std::vector<model::Gpu>& gpus) {
  for (const model::Gpu& gpu : gpus) {
    if (gpu.links.empty()) continue;
    rows_.try_emplace(gpu.id);
    for (const model::GpuPeer& peer : gpu.links) rows_.try_emplace(peer.id);
  }
  std::size_t next = 0;
  for (auto& [id, row] : rows_) row = next++;
  links_.resize(rows_.size() * rows_.size());
  for (const model::Gpu& gpu : gpus) {
    for (const model::GpuPeer& peer : gpu.links) {
      const std::size_t a = rows_.at(gpu.id);
      const std::size_t b = rows_.at(peer.id);
      links_[a * rows_.size() + b] = links_[b * rows_.size() + a] = peer.link;
    }
  }
}

std::optional<std::size_t> GpuLinks::row_of(const std::string& gpu) const {
  const auto row = rows_.find(gpu);
  return row == rows_.end() ? std::nullopt : std::optional(row->second);
}

int distance_of(model::GpuLink link) {
  switch (link) {
    case model::GpuLink::nv:
      return 0;
    case model::GpuLink::pix:
      return 5;
    case model::GpuLink::pxb:
      return 6;
    case model::GpuLink::phb:
      return 7;
    case model::GpuLink::node:
      return 8;
    case model::GpuLink::sys:
      break;
  }
  return 9;
}

}  // namespace berth::policies
