// SPDX-License-Identifier: Apache-2.0
// A job of five parts that says how far it is: in the FILE that its rule names, or else to berthd itself
// (docs/progress.md).
// usage: progress [FILE]
// build: c++ -std=c++17 progress.cpp $(pkg-config --cflags --libs libsystemd) -o progress
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include <systemd/sd-bus.h>

namespace {

// Written aside and renamed: a reader finds the old figure or the new one, never a half.
bool report_in_file(const std::string& path, int done, int total) {
  const std::string aside = path + ".new";
  std::ofstream file(aside);
  file << done << "/" << total << "\n";
  file.close();
  return file.good() && std::rename(aside.c_str(), path.c_str()) == 0;
}

// No name: the workload that this process runs in.
bool report_to_berthd(sd_bus* bus, int done, int total) {
  return sd_bus_call_method(bus, "org.berth.Node1", "/org/berth/Node1", "org.berth.Node1.Manager",
                            "ReportProgress", nullptr, nullptr, "sd", "",
                            static_cast<double>(done) / total) >= 0;
}

}  // namespace

int main(int argc, char** argv) {
  sd_bus* bus = nullptr;
  if (argc < 2 && sd_bus_open_system(&bus) < 0) std::fputs("there is no bus to report on\n", stderr);
  const char* pause = std::getenv("SECONDS_A_PART");
  const std::chrono::duration<double> part(pause == nullptr ? 1 : std::atof(pause));
  constexpr int kTotal = 5;
  for (int done = 1; done <= kTotal; ++done) {
    std::this_thread::sleep_for(part);  // the work
    const bool reported = argc > 1 ? report_in_file(argv[1], done, kTotal)
                                   : bus != nullptr && report_to_berthd(bus, done, kTotal);
    // The work goes on even if no daemon answers.
    if (!reported) std::fprintf(stderr, "cannot report %d/%d\n", done, kTotal);
  }
  sd_bus_flush_close_unref(bus);
}
