// SPDX-License-Identifier: Apache-2.0
#include "cli/render_topology.h"

#include "model/count_text.h"
#include "model/name.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {
namespace {

using model::Cpu;
using model::CpuSet;
using model::Topology;

constexpr std::size_t kLongestLabel = 10;
constexpr std::string_view kIndent = "  ";
constexpr std::size_t kRowTitle = 10;  // "thread 0", "core" and their blanks
constexpr std::string_view kDivider = " |";
constexpr std::size_t kHomeLines = 3;  // of names below a domain

// Text and how wide it looks; colour codes have no width.
struct Drawn {
  std::string text;
  std::size_t width = 0;
};

struct CoreColumn {  // a core
  std::vector<const Cpu*> threads;
};

struct CacheGroup {  // columns that share a last-level cache and a NUMA node
  std::string title;
  std::vector<CoreColumn> columns;
  std::set<std::string> homes = {};  // of services
};

// Some columns of a group, as many as fit a line.
struct Piece {
  const CacheGroup* group = nullptr;
  std::size_t first = 0;
  std::size_t count = 0;
};

struct Socket {
  int id = 0;
  std::vector<CacheGroup> groups;
  CpuSet elsewhere;  // offline vCPUs whose socket alone is known
  std::set<int> numa;
  std::size_t cores = 0;
  std::size_t vcpus = 0;
};

// Code points, near enough to columns for service names.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string shortened(std::string_view given) {
  if (given.empty()) return "";
  const std::string label = model::to_name(given);
  std::string text;
  std::size_t width = 0;
  const bool cut = width_of(label) > kLongestLabel;
  for (const char c : label) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    if (starts && cut && width + 1 == kLongestLabel) return text + "~";
    if (starts) ++width;
    text += c;
  }
  return text;
}

// Idle ones are dim, busy ones stand out.
std::string_view use_colour(double share) {
  if (share < 0.05) return "2";
  if (share < 0.6) return "32";
  return share < 0.9 ? "33" : "31";
}

class Drawing {
 public:
  Drawing(const Topology& topology, const RenderOptions& options)
      : topology_(topology),
        options_(options),
        width_(static_cast<std::size_t>(std::max(options.width, 40))) {
    for (const auto& [cpu, label] : options.labels) colour_of_.emplace(label, 0);
    // Six colours, in the order of the names: the same picture every time.
    int next = 0;
    for (auto& [label, colour] : colour_of_) colour = 31 + next++ % 6;
    for (const Cpu& cpu : topology.cpus()) {
      if (cpu.efficiency) kinds_.insert(*cpu.efficiency);
    }
    for (const Cpu& cpu : topology.cpus())
      most_threads_ = std::max(most_threads_, ++threads_of_core_[cpu.core]);
  }

  std::string draw() {
    const auto sockets = sorted_in();
    std::string out = summary(sockets);
    for (const Socket& socket : sockets) out += socket_text(socket);
    return out + nodes_without_cpus() + legend();
  }

 private:
  // Whether only the socket of a vCPU is known: it is offline, and alone in its core.
  bool unplaced(const Cpu& cpu) const {
    return !cpu.online && !cpu.llc && threads_of_core_.at(cpu.core) == 1;
  }

  std::vector<Socket> sorted_in() const;
  std::string summary(const std::vector<Socket>& sockets) const;
  std::string socket_text(const Socket& socket);
  std::vector<std::vector<Piece>> lines_of(const Socket& socket) const;
  std::string row_text(std::string_view title, const std::vector<Piece>& pieces,
                       const std::function<Drawn(const Piece&)>& text_of) const;
  std::string line_text(const std::vector<Piece>& pieces);
  std::set<std::string> homes_of(const std::vector<CoreColumn>& columns) const;
  std::string homes_text(const std::vector<Piece>& pieces) const;
  // "1 (no memory)".
  std::string node_name(int number) const;
  std::string nodes_without_cpus() const;
  std::string legend() const;

  std::size_t cell_width(const CacheGroup& group) const;
  std::size_t piece_width(const Piece& piece) const;
  Drawn number(const Cpu& cpu);
  std::string coloured(std::string_view text, std::string_view code) const {
    return options_.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  }
  const std::string* label(const Cpu& cpu) const {
    const auto found = options_.labels.find(cpu.cpu);
    return found == options_.labels.end() || found->second.empty() ? nullptr : &found->second;
  }
  std::string kind_name(int efficiency) const;
  // "43", nullopt where it is not known.
  std::optional<std::string> percent(const Cpu& cpu) const {
    const auto found = options_.use.find(cpu.cpu);
    if (found == options_.use.end()) return std::nullopt;
    return fmt::format("{:.0f}", std::clamp(found->second, 0.0, 1.0) * 100);
  }

  const Topology& topology_;
  const RenderOptions& options_;
  std::size_t width_;
  std::map<std::string, int> colour_of_;
  std::set<int> kinds_;
  std::map<int, std::size_t> threads_of_core_;
  std::size_t most_threads_ = 1;
  bool offline_drawn_ = false;
  bool forbidden_drawn_ = false;
};

std::vector<Socket> Drawing::sorted_in() const {
  // Cores in the order of their lowest vCPU, since vCPUs come ascending.
  struct Place {
    int llc;
    int numa;
    auto operator<=>(const Place&) const = default;  // NOLINT(modernize-use-nullptr): there is none
  };
  std::map<int, std::map<Place, std::vector<CoreColumn>>> grid;
  std::map<int, Socket> sockets;
  std::map<int, std::pair<Place, std::size_t>> column_of_core;
  for (const Cpu& cpu : topology_.cpus()) {
    Socket& socket = sockets[cpu.socket];
    socket.id = cpu.socket;
    socket.numa.insert(cpu.numa);
    ++socket.vcpus;
    if (unplaced(cpu)) {
      socket.elsewhere.insert(cpu.cpu);
      continue;
    }
    const Place place{cpu.llc.value_or(-1), cpu.numa};
    auto& columns = grid[cpu.socket][place];
    const auto [entry, fresh] = column_of_core.emplace(cpu.core, std::pair(place, columns.size()));
    if (fresh) {
      columns.emplace_back();
      ++socket.cores;
    }
    columns[entry->second.second].threads.push_back(&cpu);
  }
  std::vector<Socket> result;
  for (auto& [id, socket] : sockets) {
    for (auto& [place, columns] : grid[id]) {
      std::string title =
          place.llc < 0 ? (topology_.has_llc() ? "no LLC" : "") : fmt::format("LLC {}", place.llc);
      if (socket.numa.size() > 1)
        title += fmt::format("{}NUMA {}", title.empty() ? "" : ", ", node_name(place.numa));
      auto homes = homes_of(columns);
      socket.groups.push_back({std::move(title), std::move(columns), std::move(homes)});
    }
    result.push_back(std::move(socket));
  }
  return result;
}

std::string Drawing::summary(const std::vector<Socket>& sockets) const {
  std::set<int> numa;
  std::size_t cores = 0;
  for (const Socket& socket : sockets) {
    numa.insert(socket.numa.begin(), socket.numa.end());
    cores += socket.cores;
  }
  const std::size_t with_cpus = numa.size();
  for (const model::NumaNode& node : topology_.numa_nodes()) numa.insert(node.number);
  std::string text = model::count_text(sockets.size(), "socket") + ", ";
  text += topology_.has_llc()
              ? model::count_text(topology_.domains(model::DomainKind::llc).size(), "LLC domain") + ", "
              : "";
  text += model::count_text(numa.size(), "NUMA node");
  if (numa.size() > with_cpus) text += fmt::format(" ({} without vCPUs)", numa.size() - with_cpus);
  text += ", " + model::count_text(cores, "core") + ", " + model::count_text(topology_.all().size(), "vCPU");
  if (most_threads_ > 1) text += fmt::format(" ({} threads a core)", most_threads_);
  text += '\n';
  if (topology_.usable() != topology_.all()) {
    text += fmt::format("usable: {} of {} ({})\n", topology_.usable().size(), topology_.all().size(),
                        topology_.usable().to_string());
  }
  if (topology_.lone_sockets()) {
    text += "each socket has one core and shares nothing: the sockets of a NUMA node count as one domain\n";
    return text;
  }
  if (!topology_.has_llc()) text += "no shared last-level cache is known: sockets count as its domains\n";
  return text;
}

std::string Drawing::kind_name(int efficiency) const {
  if (efficiency == *kinds_.rbegin()) return "P";
  if (efficiency == *kinds_.begin()) return "E";
  return "M";
}

std::size_t Drawing::cell_width(const CacheGroup& group) const {
  std::size_t width = 2;
  for (const CoreColumn& column : group.columns) {
    for (const Cpu* cpu : column.threads) {
      width = std::max({width, std::to_string(cpu->core).size(),
                        std::to_string(cpu->cpu).size() + (cpu->online && cpu->allowed ? 0U : 1U)});
      if (const auto text = percent(*cpu)) width = std::max(width, text->size());
      if (const auto* text = label(*cpu)) width = std::max(width, width_of(shortened(*text)));
    }
  }
  return width;
}

// Of a piece with its leading blanks, without the divider. A title or a home wider than its columns widens
// the piece.
std::size_t Drawing::piece_width(const Piece& piece) const {
  const auto cells = piece.count * (cell_width(*piece.group) + 1);
  const auto homes = piece.group->homes.empty() ? 0 : kLongestLabel + 1;
  return std::max({cells, piece.group->title.size() + 1, homes});
}

std::vector<std::vector<Piece>> Drawing::lines_of(const Socket& socket) const {
  std::vector<std::vector<Piece>> lines;
  const auto room = width_ - kIndent.size() - kRowTitle;
  std::size_t used = room + 1;  // no line yet
  for (const CacheGroup& group : socket.groups) {
    const Piece whole{&group, 0, group.columns.size()};
    const auto needed = piece_width(whole);
    if (used + kDivider.size() + needed <= room) {
      lines.back().push_back(whole);
      used += kDivider.size() + needed;
      continue;
    }
    auto per_line = std::max<std::size_t>(1, room / (cell_width(group) + 1));
    // Lines of eight, sixteen... cores are easier to count.
    if (per_line > 8) per_line -= per_line % 8;
    for (std::size_t first = 0; first < group.columns.size(); first += per_line) {
      const Piece piece{&group, first, std::min(per_line, group.columns.size() - first)};
      lines.push_back({piece});
      used = piece_width(piece);
    }
  }
  return lines;
}

Drawn Drawing::number(const Cpu& cpu) {
  auto text = std::to_string(cpu.cpu);
  if (!cpu.online) {
    offline_drawn_ = true;
    text += 'x';
    return {coloured(text, "2"), text.size()};
  }
  if (!cpu.allowed) {
    forbidden_drawn_ = true;
    text += '!';
    return {coloured(text, "2"), text.size()};
  }
  const auto* owner = label(cpu);
  return {owner != nullptr ? coloured(text, fmt::format("1;{}", colour_of_.at(*owner))) : text, text.size()};
}

// One line over all pieces: `text_of` gives what stands in a piece. A line without any is left out.
std::string Drawing::row_text(std::string_view title, const std::vector<Piece>& pieces,
                              const std::function<Drawn(const Piece&)>& text_of) const {
  std::string text = fmt::format("{}{:<{}}", kIndent, title, kRowTitle);
  bool any = false;
  for (const Piece& piece : pieces) {
    if (&piece != &pieces.front()) text += kDivider;
    const Drawn drawn = text_of(piece);
    any = any || drawn.width > 0;
    const auto width = piece_width(piece);
    text += drawn.text + std::string(width - std::min(width, drawn.width), ' ');
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return any ? text + '\n' : std::string();
}

std::string Drawing::line_text(const std::vector<Piece>& pieces) {
  // `cell_of` gives the text under a core.
  const auto row = [&](std::string_view title, const auto& cell_of) {
    return row_text(title, pieces, [&](const Piece& piece) {
      const auto width = cell_width(*piece.group);
      Drawn all;
      bool any = false;
      for (std::size_t c = 0; c < piece.count; ++c) {
        const Drawn cell = cell_of(piece.group->columns[piece.first + c]);
        any = any || cell.width > 0;
        all.text += std::string(1 + width - cell.width, ' ') + cell.text;
        all.width += 1 + width;
      }
      return any ? all : Drawn{};
    });
  };

  std::string out = row_text("", pieces, [](const Piece& piece) {
    const auto& title = piece.group->title;
    if (title.empty()) return Drawn{};
    const auto text = ' ' + (piece.first == 0 ? title : title + ", continued");
    return Drawn{text, width_of(text)};
  });
  out += row("core", [&](const CoreColumn& column) {
    auto text = std::to_string(column.threads.front()->core);
    const auto width = text.size();
    return Drawn{coloured(text, "2"), width};
  });
  out += row("kind", [&](const CoreColumn& column) {
    const auto& efficiency = column.threads.front()->efficiency;
    return efficiency && kinds_.size() > 1 ? Drawn{kind_name(*efficiency), 1} : Drawn{};
  });
  for (std::size_t thread = 0; thread < most_threads_; ++thread) {
    out += row(most_threads_ > 1 ? fmt::format("thread {}", thread) : "vCPU", [&](const CoreColumn& column) {
      return thread < column.threads.size() ? number(*column.threads[thread]) : Drawn{};
    });
    out += row("  use %", [&](const CoreColumn& column) {
      const Cpu* cpu = thread < column.threads.size() ? column.threads[thread] : nullptr;
      const auto text = cpu != nullptr ? percent(*cpu) : std::nullopt;
      return text ? Drawn{coloured(*text, use_colour(options_.use.at(cpu->cpu))), text->size()} : Drawn{};
    });
    out += row("", [&](const CoreColumn& column) {
      const auto* owner = thread < column.threads.size() ? label(*column.threads[thread]) : nullptr;
      if (owner == nullptr) return Drawn{};
      const auto text = shortened(*owner);
      return Drawn{coloured(text, std::to_string(colour_of_.at(*owner))), width_of(text)};
    });
  }
  return out + homes_text(pieces);
}

std::set<std::string> Drawing::homes_of(const std::vector<CoreColumn>& columns) const {
  std::set<std::string> names;
  if (options_.homes.empty()) return names;
  model::CpuSet cpus;
  for (const CoreColumn& column : columns) {
    for (const Cpu* cpu : column.threads) cpus.insert(cpu->cpu);
  }
  for (const model::Domain& domain : topology_.domains(options_.home_kind)) {
    if (!domain.cpus.intersects(cpus)) continue;
    for (const auto& [name, home] : options_.homes) {
      if (!name.empty() && home.contains(domain.id)) names.insert(name);
    }
  }
  return names;
}

// As many names on a line as it holds, in at most kHomeLines lines, and how many there are besides.
std::vector<std::string> home_lines(const std::set<std::string>& names, std::size_t width) {
  std::vector<std::string> lines;
  std::size_t left = names.size();
  for (const std::string& full : names) {
    const std::string name = shortened(full);
    if (!lines.empty() && width_of(lines.back()) + 1 + width_of(name) <= width) {
      lines.back() += ' ' + name;
    } else if (lines.size() < kHomeLines) {
      lines.push_back(name);
    } else {
      break;
    }
    --left;
  }
  if (left > 0) lines.push_back(fmt::format("+{} more", left));
  return lines;
}

// Below the last cores of a domain.
std::string Drawing::homes_text(const std::vector<Piece>& pieces) const {
  std::string out;
  for (std::size_t row = 0; row <= kHomeLines; ++row) {
    out += row_text(row == 0 ? "homes" : "", pieces, [row, this](const Piece& piece) {
      const bool last = piece.first + piece.count == piece.group->columns.size();
      if (!last) return Drawn{};
      const auto lines = home_lines(piece.group->homes, piece_width(piece) - 1);
      return row < lines.size() ? Drawn{' ' + lines[row], 1 + width_of(lines[row])} : Drawn{};
    });
  }
  return out;
}

std::string Drawing::socket_text(const Socket& socket) {
  std::string numa;
  for (const int node : socket.numa) numa += fmt::format("{}{}", numa.empty() ? "" : ",", node_name(node));
  std::string out =
      fmt::format("\nsocket {}   {}, {}, NUMA {}\n", socket.id, model::count_text(socket.cores, "core"),
                  model::count_text(socket.vcpus, "vCPU"), numa);
  for (const auto& line : lines_of(socket)) out += line_text(line);
  if (!socket.elsewhere.empty()) {
    out += fmt::format("{}{:<{}} {}\n", kIndent, "offline", kRowTitle,
                       coloured(socket.elsewhere.to_string(), "2"));
  }
  return out;
}

std::string Drawing::node_name(int number) const {
  const auto& nodes = topology_.numa_nodes();
  const bool bare = std::any_of(nodes.begin(), nodes.end(), [number](const model::NumaNode& node) {
    return node.number == number && node.memory_bytes == 0;
  });
  return fmt::format("{}{}", number, bare ? " (no memory)" : "");
}

// "\nNUMA 2   64 GiB, no vCPUs\n", a line for each.
std::string Drawing::nodes_without_cpus() const {
  std::set<int> with_cpus;
  for (const Cpu& cpu : topology_.cpus()) with_cpus.insert(cpu.numa);
  std::string out;
  for (const model::NumaNode& node : topology_.numa_nodes()) {
    if (with_cpus.count(node.number) > 0) continue;
    constexpr double kGiB = 1024.0 * 1024 * 1024;
    std::string size = "memory";
    if (node.memory_bytes == 0) size = "no memory";
    if (node.memory_bytes.value_or(0) > 0)
      size = fmt::format("{:.3g} GiB", static_cast<double>(*node.memory_bytes) / kGiB);
    out += fmt::format("{}NUMA {}   {}, no vCPUs\n", out.empty() ? "\n" : "", node.number, size);
  }
  return out;
}

std::string Drawing::legend() const {
  std::vector<std::string> words;
  if (offline_drawn_) words.emplace_back("x offline");
  if (forbidden_drawn_) words.emplace_back("! outside the root cpuset, or owned by others");
  if (kinds_.size() > 1) {
    words.emplace_back("P performance cores");
    if (kinds_.size() > 2) words.emplace_back("M cores between");
    words.emplace_back("E efficient cores");
  }
  if (words.empty()) return "";
  return fmt::format("\n{}\n", model::joined(words, "   "));
}

}  // namespace

std::string render_topology(const Topology& topology, const RenderOptions& options) {
  return Drawing(topology, options).draw();
}

}  // namespace berth::cli
