// SPDX-License-Identifier: Apache-2.0
#include "cli/render_vcpu_map.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

constexpr std::size_t kDefaultWidth = 80;

struct Mark {
  char character;
  Colour colour;
};

Mark mark_of(const model::Cpu& cpu, const std::map<int, double>& use) {
  if (!cpu.online) return {'x', Colour::dim};
  const auto share = use.find(cpu.cpu);
  if (!cpu.allowed) return {'!', Colour::dim};
  if (share == use.end()) return {'?', Colour::dim};
  const int tenths = std::clamp(static_cast<int>(share->second * 10), 0, 9);
  if (tenths == 0) return {'0', Colour::dim};
  return {static_cast<char>('0' + tenths),
          tenths < 6 ? Colour::green : (tenths < 9 ? Colour::yellow : Colour::red)};
}

}  // namespace

std::string render_vcpu_map(const model::Topology& topology, const std::map<int, double>& use,
                            const Style& style) {
  std::map<std::pair<int, int>, std::vector<const model::Cpu*>> groups;  // by socket and LLC
  for (const model::Cpu& cpu : topology.cpus()) groups[{cpu.socket, cpu.llc.value_or(-1)}].push_back(&cpu);

  std::string text = "vCPUs: tenths of the time that each is busy\n";
  for (const auto& [place, cpus] : groups) {
    const std::string title = place.second < 0
                                  ? fmt::format("  socket {}", place.first)
                                  : fmt::format("  socket {}, LLC {}", place.first, place.second);
    const std::string head = fmt::format("{:<20} {:>4} ", title, cpus.front()->cpu);
    const std::size_t width = std::max(style.width == 0 ? kDefaultWidth : style.width, head.size() + 8);
    text += head;
    std::size_t column = head.size();
    for (const model::Cpu* cpu : cpus) {
      if (column == width) {
        text += fmt::format("\n{:<20} {:>4} ", "", cpu->cpu);
        column = head.size();
      }
      const Mark mark = mark_of(*cpu, use);
      text += paint(style, mark.colour, std::string(1, mark.character));
      ++column;
    }
    text += '\n';
  }
  return text;
}

}  // namespace berth::cli
