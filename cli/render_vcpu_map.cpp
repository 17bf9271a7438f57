// SPDX-License-Identifier: Apache-2.0
#include "cli/render_topology.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
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

// The letter of each owner, in the order of their names.
std::map<std::string, char> letters_of(const std::map<int, std::string>& owners) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::map<std::string, char> letters;
  for (const auto& [cpu, owner] : owners) letters.emplace(owner, '#');
  std::size_t next = 0;
  for (auto& [owner, letter] : letters) {
    if (next < kLetters.size()) letter = kLetters[next++];
  }
  return letters;
}

// "  owners: a web, b db", cut where the line ends.
std::string key_of(const std::map<std::string, char>& letters, std::size_t width) {
  std::string text = "  owners:";
  std::size_t left = letters.size();
  for (const auto& [owner, letter] : letters) {
    const std::string more =
        fmt::format("{} {} {}", left == letters.size() ? "" : ",", letter, printable(owner));
    const std::string rest = fmt::format(", {} more", left);
    if (display_width(text) + display_width(more) + (left > 1 ? rest.size() : 0) > width) {
      text += rest;
      break;
    }
    text += more;
    --left;
  }
  return text + '\n';
}

}  // namespace

std::string render_vcpu_map(const model::Topology& topology, const std::map<int, double>& use,
                            const Style& style, const std::map<int, std::string>& owners) {
  std::map<std::pair<int, int>, std::vector<const model::Cpu*>> groups;  // by socket and LLC
  for (const model::Cpu& cpu : topology.cpus()) groups[{cpu.socket, cpu.llc.value_or(-1)}].push_back(&cpu);
  const auto letters = letters_of(owners);
  const auto owner_of = [&](const model::Cpu& cpu) {
    const auto owner = owners.find(cpu.cpu);
    return owner == owners.end() ? std::string(".")
                                 : paint(style, Colour::bold, std::string(1, letters.at(owner->second)));
  };

  std::string text = "vCPUs: tenths of the time that each is busy\n";
  const std::size_t columns = style.width == 0 ? kDefaultWidth : style.width;
  for (const auto& [place, cpus] : groups) {
    const std::string title = place.second < 0
                                  ? fmt::format("  socket {}", place.first)
                                  : fmt::format("  socket {}, LLC {}", place.first, place.second);
    constexpr std::size_t kHead = 26;  // columns before the first vCPU
    const std::size_t room = std::max(columns, kHead + 8) - kHead;
    for (std::size_t first = 0; first < cpus.size(); first += room) {
      const std::size_t last = std::min(cpus.size(), first + room);
      text += fmt::format("{:<20} {:>4} ", first == 0 ? title : "", cpus[first]->cpu);
      std::string below;
      for (std::size_t i = first; i < last; ++i) {
        const Mark mark = mark_of(*cpus[i], use);
        text += paint(style, mark.colour, std::string(1, mark.character));
        below += owner_of(*cpus[i]);
      }
      text += '\n';
      if (!letters.empty()) text += fmt::format("{:{}}{}\n", "", kHead, below);
    }
  }
  return letters.empty() ? text : text + key_of(letters, columns);
}

}  // namespace berth::cli
