// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/document.h"
#include "cli/text.h"
#include "model/topology.h"

#include <cstddef>
#include <map>
#include <string>

namespace berth::cli {

// The data of one refresh.
struct TopFrame {      // NOLINT(bugprone-exception-escape): no move of a document throws
  Document status;     // berth.status/1
  Document workloads;  // berth.workloads/1
  Document decisions;  // berth.log/1, the newest first
  model::Topology topology;
  std::map<int, double> vcpu_use;  // share 0..1 of the time since the frame before; known ones only
  double now = 0;                  // epoch seconds
};

enum class TopSort { cpu, pressure, runq, llc, score, quota, progress, vcpus, service, workload };

// The user's choices.
struct TopView {
  TopSort sort = TopSort::cpu;
  bool reversed = false;
  std::size_t first_row = 0;  // of the workloads
  std::size_t height = 0;     // lines; 0: as many as needed
};

// The next one; after the last comes the first.
TopSort next_sort(TopSort sort);

// Four parts: the host in a few lines, its processors with use and owner of each vCPU, the workloads, and the
// newest decisions, where they have room.
// The processors are drawn smaller where they would take more than half of the height and push out workloads.
// The largest of the sorted column comes first, unknown figures last. With a height, the text has at most as
// many lines; the last one lists the keys.
struct TopPage {
  std::string text;
  std::size_t rows = 0;  // number of workloads that fit
};
TopPage render_top(const TopFrame& frame, const TopView& view, const Style& style);

}  // namespace berth::cli
