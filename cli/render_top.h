// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/document.h"
#include "cli/text.h"
#include "model/topology.h"

#include <cstddef>
#include <map>
#include <string>

namespace berth::cli {

// What one refresh got hold of.
struct TopFrame {
  Document status;     // berth.status/1
  Document workloads;  // berth.workloads/1
  model::Topology topology;
  std::map<int, double> vcpu_use;  // share 0..1 of the time since the frame before; those that are known
  double now = 0;                  // epoch seconds
};

enum class TopSort { cpu, pressure, runq, llc, score, vcpus, service, workload };

// What the user chose.
struct TopView {
  TopSort sort = TopSort::cpu;
  bool reversed = false;
  std::size_t first_row = 0;  // of the workloads
  std::size_t height = 0;     // lines; 0 as many as it takes
};

// The one after it, the first after the last.
TopSort next_sort(TopSort sort);

// The node in a few lines, its processors with use and owner of each vCPU (smaller where they would take more
// than half of the height and workloads had to give way), and the workloads, largest of the sorted column
// first; where not known, last. With a height there are as many lines as that at most, the last one naming
// the keys.
struct TopPage {
  std::string text;
  std::size_t rows = 0;  // workloads that it has room for
};
TopPage render_top(const TopFrame& frame, const TopView& view, const Style& style);

}  // namespace berth::cli
