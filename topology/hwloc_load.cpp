// SPDX-License-Identifier: Apache-2.0
#include "model/plain_text.h"
#include "model/text.h"
#include "topology/hwloc_tree.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <stdlib.h>

namespace berth::topology {

namespace {

// Says why a file is no hwloc XML export that can be read, as hwloc itself gives no reason.

constexpr std::size_t kMostNameBytes = 32;  // of an element that is quoted

constexpr const char* kWriteOne = "`lstopo FILE.xml` writes one";

void skip(std::string_view& text, std::size_t count) { text.remove_prefix(std::min(count, text.size())); }

void skip_blanks(std::string_view& text) { text = model::trimmed_start(text, model::kBlanksAndBreaks); }

// Moves behind `end`; false where there is none.
bool skip_past(std::string_view& text, std::string_view end) {
  const std::size_t at = text.find(end);
  skip(text, at == std::string_view::npos ? at : at + end.size());
  return at != std::string_view::npos;
}

// Moves to the name of the first element, past the declaration, the document type and comments.
bool find_element(std::string_view& text) {
  if (text.starts_with("\xEF\xBB\xBF")) skip(text, 3);
  for (;;) {
    skip_blanks(text);
    if (!text.starts_with('<')) return false;
    if (text.starts_with("<!--")) {
      if (!skip_past(text, "-->")) return false;
    } else if (text.starts_with("<?") || text.starts_with("<!")) {
      if (!skip_past(text, ">")) return false;
    } else {
      skip(text, 1);
      return true;
    }
  }
}

// The value of an attribute among those of one element; nullopt where there is none.
std::optional<std::string_view> attribute(std::string_view attributes, std::string_view name) {
  for (;;) {
    skip_blanks(attributes);
    const std::size_t equals = attributes.find('=');
    if (equals == std::string_view::npos || equals + 1 >= attributes.size()) return std::nullopt;
    const auto key = model::trimmed_end(attributes.substr(0, equals), model::kBlanksAndBreaks);
    skip(attributes, equals + 1);
    skip_blanks(attributes);
    if (attributes.empty()) return std::nullopt;
    const char quote = attributes.front();
    if (quote != '"' && quote != '\'') return std::nullopt;
    skip(attributes, 1);
    const std::size_t end = attributes.find(quote);
    if (end == std::string_view::npos) return std::nullopt;
    if (key == name) return attributes.substr(0, end);
    skip(attributes, end + 1);
  }
}

std::optional<unsigned> major_version(std::string_view version) {
  unsigned major = 0;
  const auto read = std::from_chars(version.data(), version.data() + version.size(), major);
  if (read.ec != std::errc()) return std::nullopt;
  return major;
}

// The fault of an export, and what to do about it. `reads` is the newest major version that can be read.
// nullopt where the beginning and the end are those of an export, which may be wrong in between.
std::optional<std::string> fault_of_export(std::string_view xml, unsigned reads) {
  std::string_view text = xml;
  skip_blanks(text);
  if (text.empty()) return fmt::format("it is empty; {}", kWriteOne);
  if (!find_element(text)) return fmt::format("it is no XML, so no export of hwloc; {}", kWriteOne);
  const std::string_view name = text.substr(0, text.find_first_of(" \t\r\n/>"));
  if (name == "topologydiff") {
    return "it is a difference of two topologies; hwloc-patch(1) applies it to an export";
  }
  if (name != "topology" && name != "root") {
    return fmt::format("its first element is <{}>, so it is no export of hwloc; {}",
                       model::plain_text(name, kMostNameBytes), kWriteOne);
  }
  skip(text, name.size());
  const auto version = attribute(text.substr(0, text.find('>')), "version");
  const auto major = version ? major_version(*version) : std::nullopt;
  if (major && *major > reads) {
    return fmt::format(
        "it was written by hwloc {}; this berth reads 1.x to {}.x: `lstopo --export-xml-flags v{} FILE.xml` "
        "writes an older format",
        *major, reads, reads);
  }
  if (text.find(fmt::format("</{}>", name)) == std::string_view::npos) {
    return fmt::format("its end is missing, so it was not copied as a whole; {}", kWriteOne);
  }
  return std::nullopt;
}

namespace fs = std::filesystem;
using model::Error;
using model::ErrorKind;
using model::fail;
using model::Result;

// A tree with its filters set, not loaded yet.
Result<Tree> prepared() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return fail(Error::from_errno(errno, "hwloc_topology_init"));
  Tree tree(raw);
  int failed = hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  // Level 1 is never shared by cores, and berth does not use dies and I/O. Groups stay: NUMA nodes may hang
  // on them.
  failed |= hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  failed |= hwloc_topology_set_icache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  failed |= hwloc_topology_set_type_filter(raw, HWLOC_OBJ_L1CACHE, HWLOC_TYPE_FILTER_KEEP_NONE);
  failed |= hwloc_topology_set_type_filter(raw, HWLOC_OBJ_DIE, HWLOC_TYPE_FILTER_KEEP_NONE);
  failed |= hwloc_topology_set_type_filter(raw, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (failed != 0) return fail(Error::from_errno(errno, "hwloc: setting up the discovery"));
  return tree;
}

// hwloc's x86 component would bind this thread to every vCPU in turn. The kernel has all of its data in /sys.
Result<void> without_cpuid(const Tree& tree) {
  if (hwloc_topology_set_components(tree.get(), HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86") != 0) {
    return fail(Error::from_errno(errno, "hwloc: leaving out component x86"));
  }
  return {};
}

Result<void> loaded(const Tree& tree, const std::string& what) {
  errno = 0;
  if (hwloc_topology_load(tree.get()) == 0) return {};
  const int error = errno;
  if (error == 0 || error == EINVAL)
    return fail(ErrorKind::invalid_input, what + ": hwloc cannot make a topology of it");
  return fail(Error::from_errno(error, what + ": hwloc"));
}

// Where hwloc cannot read /sys, it only counts processors: that would be a tree without caches or sockets.
bool read_by_linux(const Tree& tree) {
  const auto* root = hwloc_get_root_obj(tree.get());
  for (unsigned i = 0; i < root->infos_count; ++i) {
    if (std::strcmp(root->infos[i].name, "Backend") == 0 && std::strcmp(root->infos[i].value, "Linux") == 0) {
      return true;
    }
  }
  return false;
}

// hwloc gives no reason itself. Without its plugin for libxml2 it reads only XML that hwloc has written.
std::string unreadable_export() {
  const unsigned version = hwloc_get_api_version();
  return fmt::format(
      ": hwloc {}.{} reads no topology in it; it was changed, cut, or not written by hwloc; `lstopo "
      "FILE.xml` on "
      "that host writes a new one",
      version >> 16U, (version >> 8U) & 0xFFU);
}

// A directory that shows `sys` and `proc` of two roots side by side, as hwloc needs them.
class JoinedRoots {
 public:
  static Result<std::unique_ptr<JoinedRoots>> make(const Roots& roots) {
    std::error_code error;
    std::string name = (fs::temp_directory_path(error) / "berth-roots-XXXXXX").native();
    if (error || ::mkdtemp(name.data()) == nullptr) return fail(Error::from_errno(errno, name));
    std::unique_ptr<JoinedRoots> joined(new JoinedRoots(name));
    for (const auto& [link, target] : {std::pair("sys", roots.sys), std::pair("proc", roots.proc)}) {
      const auto absolute = fs::absolute(target, error);
      if (!error) fs::create_directory_symlink(absolute, joined->path_ / link, error);
      if (error) return fail(Error::from_errno(error.value(), (joined->path_ / link).native()));
    }
    return joined;
  }
  JoinedRoots(const JoinedRoots&) = delete;
  JoinedRoots& operator=(const JoinedRoots&) = delete;
  ~JoinedRoots() {
    std::error_code ignored;
    fs::remove(path_ / "sys", ignored);
    fs::remove(path_ / "proc", ignored);
    fs::remove(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  explicit JoinedRoots(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

// Only the environment can tell hwloc another root. No other thread may touch it meanwhile. So this is for
// moved roots (tests, containers), never for the host's own.
class ScopedFsRoot {
 public:
  explicit ScopedFsRoot(const fs::path& root) : lock_(mutex()) {
    if (const char* old = ::getenv(kVariable)) before_ = old;
    ::setenv(kVariable, root.c_str(), 1);
  }
  ScopedFsRoot(const ScopedFsRoot&) = delete;
  ScopedFsRoot& operator=(const ScopedFsRoot&) = delete;
  ~ScopedFsRoot() {
    if (before_) {
      ::setenv(kVariable, before_->c_str(), 1);
    } else {
      ::unsetenv(kVariable);
    }
  }

 private:
  static constexpr const char* kVariable = "HWLOC_FSROOT";
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  std::lock_guard<std::mutex> lock_;
  std::optional<std::string> before_;
};

// Number of vCPUs that a synthetic description asks for: the product of the counts outside brackets. hwloc
// would build any number of them.
double product_of_counts(std::string_view description) {
  double product = 1;
  int depth = 0;
  for (std::size_t i = 0; i < description.size();) {
    const char c = description[i];
    if (c == '(' || c == '[') ++depth;
    if ((c == ')' || c == ']') && depth > 0) --depth;
    const bool starts = i == 0 || description[i - 1] == ':' || description[i - 1] == ' ';
    if (depth > 0 || !starts || std::isdigit(static_cast<unsigned char>(c)) == 0) {
      ++i;
      continue;
    }
    unsigned count = std::numeric_limits<unsigned>::max();
    const auto* first = description.data() + i;
    const auto end = std::from_chars(first, description.data() + description.size(), count).ptr;
    product *= count;
    i += static_cast<std::size_t>(end - first);
  }
  return product;
}

}  // namespace

Result<Tree> load_live() {
  auto tree = prepared();
  if (!tree) return tree;
  if (auto done = without_cpuid(*tree); !done) return fail(done.error());
  if (auto done = loaded(*tree, "the host's processors"); !done) return fail(done.error());
  return tree;
}

Result<Tree> load_below(const Roots& roots) {
  auto joined = JoinedRoots::make(roots);
  if (!joined) return fail(joined.error());
  auto tree = prepared();
  if (!tree) return tree;
  if (auto done = without_cpuid(*tree); !done) return fail(done.error());
  const auto what = (roots.sys / "devices/system/cpu").native();
  {
    const ScopedFsRoot root((*joined)->path());
    if (auto done = loaded(*tree, what); !done) return fail(done.error());
  }
  if (!read_by_linux(*tree)) return fail(ErrorKind::unavailable, what + ": hwloc finds no processors there");
  return tree;
}

Result<Tree> load_xml(const std::string& xml, const std::string& name) {
  const unsigned major = hwloc_get_api_version() >> 16U;
  if (const auto fault = fault_of_export(xml, major))
    return fail(ErrorKind::invalid_input, name + ": " + *fault);
  auto tree = prepared();
  if (!tree) return tree;
  // hwloc's length includes the terminating zero.
  if (xml.size() >= static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      hwloc_topology_set_xmlbuffer(tree->get(), xml.c_str(), static_cast<int>(xml.size() + 1)) != 0) {
    return fail(ErrorKind::invalid_input, name + unreadable_export());
  }
  if (auto done = loaded(*tree, name); !done) {
    if (done.error().kind() != ErrorKind::invalid_input) return fail(done.error());
    return fail(ErrorKind::invalid_input, name + unreadable_export());
  }
  return tree;
}

Result<Tree> load_synthetic(const std::string& description) {
  const auto what = fmt::format("hwloc synthetic topology \"{}\"", description);
  if (product_of_counts(description) > model::kMaxCpu + 1) {
    return fail(ErrorKind::invalid_input, fmt::format("{}: more than {} vCPUs", what, model::kMaxCpu + 1));
  }
  auto tree = prepared();
  if (!tree) return tree;
  if (hwloc_topology_set_synthetic(tree->get(), description.c_str()) != 0) {
    return fail(ErrorKind::invalid_input,
                what + ": not a description such as \"package:2 l3cache:1 core:4 pu:2\"");
  }
  if (auto done = loaded(*tree, what); !done) return fail(done.error());
  return tree;
}

}  // namespace berth::topology
