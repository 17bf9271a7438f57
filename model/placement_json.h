// SPDX-License-Identifier: Apache-2.0
// The fields of the placement policy's findings.
#pragma once

#include "model/json_fields.h"
#include "model/placement_findings.h"

#include <map>
#include <string>

namespace berth::model {

// Names that are no links are of a later version.
struct AsLinkCounts {
  void read(const JsonValue& value, std::map<GpuLink, int>& links) const {
    constexpr int kMostPairs = kMostLinkedGpus * (kMostLinkedGpus - 1) / 2;
    value.each_member([&links](const std::string& name, const JsonValue& pairs) {
      for (const GpuLink link : kGpuLinks) {
        if (name == to_string(link)) links[link] = pairs.small_integer(1, kMostPairs);
      }
    });
  }
  void write(JsonWriter& out, const std::map<GpuLink, int>& links) const {
    out.begin_object();
    for (const auto& [link, pairs] : links) out.member(to_string(link), pairs);
    out.end_object();
  }
};

template <typename Io>
void fields(Io& io, Of<Io, FittingBin>& bin) {
  io.required("host", bin.host, as::line);
  io.required("numa", bin.numa, as::integer{0, kMaxCpu});
  io.if_set("numa_nodes", bin.numa_nodes, as::cpulist);
  io.required("cpus", bin.cpus, as::cpulist);
  io.optional("gpus", bin.gpus, as::list(as::name));
  io.if_set("gpu_links", bin.gpu_links, AsLinkCounts());
  io.required("cpu_left", bin.cpu_left_cores, as::figure);
  io.required("memory_left_bytes", bin.memory_left_bytes, as::bytes);
  io.required("free_share", bin.free_share, as::figure);
  io.optional("gpus_total", bin.gpus_total, as::integer{0, kMaxCpu + 1});
  io.optional("gpus_left", bin.gpus_left, as::integer{0, kMaxCpu + 1});
  io.optional("gpu_memory_left_bytes", bin.gpu_memory_left_bytes, as::bytes);
  io.nullable("score_before", bin.score_before, as::figure);
  io.nullable("score_after", bin.score_after, as::figure);
  io.nullable("rise", bin.rise, as::figure);
  io.optional("reason", bin.reason, as::text);
}

template <typename Io>
void fields(Io& io, Of<Io, RejectedBin>& bin) {
  io.required("host", bin.host, as::line);
  io.required("numa", bin.numa, as::integer{0, kMaxCpu});
  io.if_set("numa_nodes", bin.numa_nodes, as::cpulist);
  io.required("reason", bin.reason, as::text);
}

template <typename Io>
void fields(Io& io, Of<Io, BinRanking>& bins) {
  io.required("fitting", bins.fitting, as::list(as::object));
  io.required("rejected", bins.rejected, as::list(as::object));
}

template <typename Io>
void fields(Io& io, Of<Io, PlacementFindings>& findings) {
  io.required("pending", findings.pending, as::by_name(as::object));
}

}  // namespace berth::model
