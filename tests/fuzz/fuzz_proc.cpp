// SPDX-License-Identifier: Apache-2.0
// Files of a process whose owner chose as much of them as it could. First byte: which file; the rest its
// text.
#include "model/name.h"
#include "os/proc_files.h"
#include "spark/names.h"
#include "spark/process.h"
#include "tests/fuzz/property.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

using namespace berth;

constexpr std::array<const char*, 5> kFiles{"stat", "status", "cgroup", "statm", "cmdline"};

// In memory, and with the texts of a usual process.
struct Place {
  std::filesystem::path root = "/dev/shm/berth-fuzz-proc-" + std::to_string(getpid());
  std::filesystem::path process = root / "7";
  Place() {
    std::filesystem::create_directories(process);
    std::string stat = "7 (java) S 1";
    for (int field = 5; field <= 52; ++field) stat += " 9";
    write("stat", stat + "\n");
    write("status", "Name:\tjava\nUid:\t1\t1\t1\t1\n");
    write("cgroup", "0::/system.slice/a.service\n");
    write("statm", "9 8 7 6 5 4 3\n");
    std::string line =
        "java/org.apache.spark.executor.CoarseGrainedExecutorBackend/--app-id/app-1/--executor-id/0/";
    for (char& c : line) c = c == '/' ? '\0' : c;
    write("cmdline", line);
  }
  ~Place() {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
  void write(const char* name, std::string_view text) const { std::ofstream(process / name) << text; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const Place place;
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  const char* file = kFiles[data[0] % kFiles.size()];
  const std::string before = os::read_start(place.process / file, 65536);
  place.write(file, text);
  (void)os::read_stat(place.process);
  (void)os::user_of(place.process);
  (void)os::read_memory_use(place.process);
  (void)os::cgroup_of(place.process);
  if (const auto found = spark::find_process(place.root, 7)) {
    fuzz::require(found->what.app.empty() || spark::is_name(found->what.app), "an application has a name");
    fuzz::require(found->what.executor.empty() || spark::is_name(found->what.executor), "so has an executor");
    fuzz::require(found->what.name.size() <= text.size() + 64, "a class is part of the command line");
  }
  place.write(file, before);
  return 0;
}
