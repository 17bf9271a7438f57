// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_news.h"
#include "cli/log_options.h"
#include "cli/render.h"
#include "model/json_text.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <ostream>

namespace berth::cli {

namespace {

struct WatchArguments {
  LogOptions log;
  std::uint32_t number = 0;  // 0: without an end
};

void print(Session& session, const Document& news) {
  if (session.json) {
    Document line = news;
    line["schema"] = "berth.watch/1";
    session.out << model::json_text(line) << "\n" << std::flush;
    return;
  }
  render_log(session.out, {news}, session.style);
  session.out << std::flush;
}

Outcome<void> watch(Session& session, const WatchArguments& arguments) {
  std::uint32_t told = 0;
  return follow_daemon([&](const Document& news) {
    if (!arguments.log.accept(news)) return true;
    print(session, news);
    ++told;
    return session.out && (arguments.number == 0 || told < arguments.number);
  });
}

}  // namespace

Action declare_watch(const Options& options) {
  const auto arguments = std::make_shared<WatchArguments>();
  declare_log_options(options, arguments->log, false, true);
  options.option("-n", arguments->number, "End after so many")
      .type_name("NUMBER")
      .from_to(1, std::numeric_limits<std::uint32_t>::max());
  return [arguments](Session& session) { return watch(session, *arguments); };
}

}  // namespace berth::cli
