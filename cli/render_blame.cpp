// SPDX-License-Identifier: Apache-2.0
#include "cli/render.h"
#include "cli/table.h"
#include "model/count_text.h"

#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace berth::cli {

namespace {

// Of culprits without a name.
std::string who(const std::string& kind) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kWords{{
      {"own", "its own threads"},
      {"quota", "none: its quota was used up"},
      {"kernel", "kernel threads"},
      {"interrupts", "interrupts"},
      {"steal", "other guests of the hypervisor"},
      {"idle", "none: the vCPU was waking up"},
      {"unknown", "not known: too many ran in turn"},
  }};
  for (const auto& [word, text] : kWords) {
    if (word == kind) return std::string(text);
  }
  return kind;
}

}  // namespace

std::string culprit_text(const Document& culprit) {
  const std::string name = text_of(culprit, "name");
  return name.empty() ? who(text_of(culprit, "kind")) : name;
}

void render_blame(std::ostream& out, const Document& blame, const Style& style) {
  const std::string service = printable(text_of(blame, "service"));
  const double seconds = number_of(blame, "seconds").value_or(0);
  const double waited_ms = number_of(blame, "waited_ms").value_or(0);
  const std::string workloads = model::count_text(list_of(blame, "workloads").size(), "workload");
  if (waited_ms <= 0) {
    out << fmt::format("{}: no thread of {} waited for a vCPU in {:.1f} s.\n", service, workloads, seconds);
    return;
  }
  out << fmt::format("{}: threads of {} waited {:.1f} ms for a vCPU in {:.1f} s, while these ran:\n", service,
                     workloads, waited_ms, seconds);
  Table table({Column::name("CULPRIT"), Column::text("KIND"), Column::figure("MS"), Column::figure("SHARE")},
              "  ");
  for (const Document& culprit : list_of(blame, "culprits")) {
    const std::string kind = text_of(culprit, "kind");
    const double ms = number_of(culprit, "ms").value_or(0);
    const double share = ms / waited_ms;
    const bool avoidable = kind == "best-effort" || kind == "cgroup" || kind == "quota";
    table.add({printable(culprit_text(culprit)), printable(kind), format_number(ms, 1),
               Cell(format_share(share), share >= 0.2 && avoidable ? Colour::yellow : Colour::none)});
  }
  table.print(out, style);
}

}  // namespace berth::cli
