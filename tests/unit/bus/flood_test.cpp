// SPDX-License-Identifier: Apache-2.0
// Users that send more or larger messages than the daemon can keep.
#include "daemon/serve/polkit.h"
#include "fixture.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <systemd/sd-bus.h>

namespace berth::test {

using Flood = BusServiceTest;

constexpr const char* kWeb = "system.slice/web@1.service";

// A connection of sd-bus itself, for messages that the library of the other clients does not make.
class PlainClient {
 public:
  PlainClient() {
    sd_bus* made = nullptr;
    if (sd_bus_open_system(&made) >= 0) bus_.reset(made);
  }

  // SetWorkload with the settings as they stand, repeated ones too; returns the error's name.
  std::string set_workload(const std::vector<std::pair<std::string, std::string>>& settings) {
    sd_bus_message* call = nullptr;
    sd_bus_message_new_method_call(bus_.get(), &call, bus::kServiceName, bus::kManagerPath, kManagerInterface,
                                   "SetWorkload");
    sd_bus_message_append(call, "s", kWeb);
    sd_bus_message_open_container(call, 'a', "{ss}");
    for (const auto& [key, value] : settings) sd_bus_message_append(call, "{ss}", key.c_str(), value.c_str());
    sd_bus_message_close_container(call);
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_call(bus_.get(), call, 0, &error, nullptr);
    std::string name = error.name == nullptr ? "" : error.name;
    sd_bus_error_free(&error);
    sd_bus_message_unref(call);
    return name;
  }
  // Begins a call without arguments, or with one string, and does not wait for its answer.
  void begin(const char* method, sd_bus_message_handler_t answered, void* userdata,
             const char* argument = nullptr) {
    if (argument == nullptr) {
      sd_bus_call_method_async(bus_.get(), nullptr, bus::kServiceName, bus::kManagerPath, kManagerInterface,
                               method, answered, userdata, "");
    } else {
      sd_bus_call_method_async(bus_.get(), nullptr, bus::kServiceName, bus::kManagerPath, kManagerInterface,
                               method, answered, userdata, "s", argument);
    }
  }
  void begin_admission(const std::string& request, sd_bus_message_handler_t answered, void* userdata) {
    sd_bus_call_method_async(bus_.get(), nullptr, bus::kServiceName, bus::kManagerPath, kManagerInterface,
                             "Admit", answered, userdata, "sd", request.c_str(), 0.0);
  }
  void begin_log(sd_bus_message_handler_t answered, void* userdata) {
    sd_bus_call_method_async(bus_.get(), nullptr, bus::kServiceName, bus::kManagerPath, kManagerInterface,
                             "GetLog", answered, userdata, "u", 0U);
  }
  void flush() { sd_bus_flush(bus_.get()); }
  // Returns once the bus has passed on everything that was begun before.
  void hand_over() {
    sd_bus_message* reply = nullptr;
    sd_bus_call_method(bus_.get(), "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                       "GetId", nullptr, &reply, "");
    sd_bus_message_unref(reply);
  }
  // Handles what arrives until `enough`.
  void pump(const std::function<bool()>& enough) {
    while (!enough()) {
      if (sd_bus_process(bus_.get(), nullptr) == 0) sd_bus_wait(bus_.get(), 20'000);
    }
  }

 private:
  struct Close {
    void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
  };
  std::unique_ptr<sd_bus, Close> bus_;
};

// Keeps the name of an answer's error, "" for success, in a std::optional<std::string>.
int note_error(sd_bus_message* reply, void* userdata, sd_bus_error*) {
  const sd_bus_error* error = sd_bus_message_get_error(reply);
  *static_cast<std::optional<std::string>*>(userdata) = error == nullptr ? "" : error->name;
  return 1;
}

// Likewise its message.
int note_message(sd_bus_message* reply, void* userdata, sd_bus_error*) {
  const sd_bus_error* error = sd_bus_message_get_error(reply);
  *static_cast<std::optional<std::string>*>(userdata) = error == nullptr ? "" : error->message;
  return 1;
}

TEST_F(Flood, ARepeatedSettingIsRefusedBeforePolkitIsAsked) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::never);
  const auto errors = with_client_as(kNobody, [] {
    PlainClient client;
    return std::vector<std::string>{
        client.set_workload({{"vcpus", "2"}, {"vcpus", "3"}}),
        client.set_workload(std::vector<std::pair<std::string, std::string>>(5000, {"vcpus", "2"}))};
  });
  for (const std::string& error : errors) EXPECT_EQ(error, bus::kInvalidInput);
  EXPECT_TRUE(polkit->questions().empty());
}

TEST_F(Flood, SettingsHaveALimitInAll) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::yes);
  const auto errors = with_client_as(kNobody, [] {
    PlainClient client;
    const std::string quarter(4000, 'x');
    return std::vector<std::string>{
        client.set_workload({{"a", quarter}, {"b", quarter}, {"c", quarter}, {"d", quarter}, {"e", quarter}}),
        client.set_workload({{"a", quarter}, {"b", quarter}, {"c", quarter}})};
  });
  EXPECT_EQ(errors[0], bus::kInvalidInput);
  EXPECT_EQ(errors[1], "");
  EXPECT_EQ(polkit->questions().size(), 1U);
}

// Begun one after the other, so that berth reads all of them before it knows their user.
TEST_F(Flood, WaitingCallsOfOneConnectionHaveALimitOfBytes) {
  constexpr std::size_t kCalls = 3;
  auto polkit = FakePolkit::start(FakePolkit::Answer::yes);
  std::promise<void> asked;
  auto caller = std::async(std::launch::async, [&] {
    become(kNobody);
    PlainClient client;
    const std::string request = "{" + std::string(100'000, ' ');
    std::vector<std::optional<std::string>> errors(kCalls);
    for (auto& error : errors) client.begin_admission(request, note_error, &error);
    client.hand_over();
    asked.set_value();
    client.pump([&] {
      return std::all_of(errors.begin(), errors.end(), [](const auto& error) { return error.has_value(); });
    });
    return errors;
  });
  asked.get_future().wait();
  serve_until([&] { return caller.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  EXPECT_EQ(caller.get(),
            (std::vector<std::optional<std::string>>{"", bus::kLimitsExceeded, bus::kLimitsExceeded}));
  EXPECT_EQ(control_.asked.size(), 1U);
}

// These are begun so, too. Root has no other limit.
TEST_F(Flood, WaitingCallsOfOneConnectionHaveALimitInNumber) {
  constexpr std::size_t kAllowed = daemon::Polkit::kMaxPerConnection;
  constexpr std::size_t kMore = 5;
  std::promise<void> asked;
  auto caller = std::async(std::launch::async, [&] {
    PlainClient client;
    std::vector<std::optional<std::string>> errors(kAllowed + kMore);
    for (auto& error : errors) client.begin("Restore", note_error, &error);
    client.hand_over();
    asked.set_value();
    client.pump([&] {
      return std::all_of(errors.begin(), errors.end(), [](const auto& error) { return error.has_value(); });
    });
    return errors;
  });
  asked.get_future().wait();
  serve_until([&] { return caller.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  std::vector<std::optional<std::string>> expected(kAllowed, "");
  expected.insert(expected.end(), kMore, bus::kLimitsExceeded);
  EXPECT_EQ(caller.get(), expected);
}

// All calls wait in the bus before berth reads the first one. So it knows the user of none of them.
TEST_F(Flood, AFloodOverManyConnectionsDoesNotKeepOutRoot) {
  constexpr std::size_t kConnections = 2 * daemon::Polkit::kMaxPending / daemon::Polkit::kMaxPerUser;
  auto polkit = FakePolkit::start(FakePolkit::Answer::never);
  std::promise<void> flooded;
  std::promise<void> over;
  auto flood = std::async(std::launch::async, [&] {
    become(kNobody);
    std::vector<PlainClient> clients(kConnections);
    for (PlainClient& client : clients) {
      for (std::size_t i = 0; i < daemon::Polkit::kMaxPerUser; ++i)
        client.begin("SetMode", nullptr, nullptr, "enforce");
      client.hand_over();
    }
    flooded.set_value();
    over.get_future().wait();
  });
  flooded.get_future().wait();
  std::promise<void> asked;
  auto root = std::async(std::launch::async, [&] {
    PlainClient client;
    std::optional<std::string> error;
    client.begin("Restore", note_error, &error);
    client.hand_over();
    asked.set_value();
    client.pump([&] { return error.has_value(); });
    return *error;
  });
  asked.get_future().wait();
  serve_until([&] { return root.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  over.set_value();
  EXPECT_EQ(root.get(), "");
  EXPECT_EQ(control_.restores, 1);
  EXPECT_EQ(control_.mode_now, "observe");
}

TEST_F(Flood, AUserThatAsksForComputedDocumentsAllTheTimeIsRefused) {
  const auto errors = with_client_as(kNobody, [] {
    PlainClient client;
    std::vector<std::optional<std::string>> answers(50);
    for (auto& answer : answers) client.begin_log(note_error, &answer);
    client.pump([&] {
      return std::all_of(answers.begin(), answers.end(),
                         [](const auto& answer) { return answer.has_value(); });
    });
    return answers;
  });
  EXPECT_EQ(errors.front(), "");
  EXPECT_NE(std::count(errors.begin(), errors.end(), std::string(bus::kLimitsExceeded)), 0);
  EXPECT_EQ(with_client([] { return Client().change("Explain", std::string(kWeb)); }).error_name, "");
}

TEST_F(Flood, AUserThatReadsLargeDocumentsAllTheTimeIsRefused) {
  control_.listed.assign(std::size_t{2} << 20, ' ');
  const auto errors_of = [this](uid_t user) {
    return with_client_as(user, [] {
      PlainClient client;
      std::vector<std::string> errors;
      // Many at once, as the share of a user fills up while a slow machine answers. Then all are read.
      for (int round = 0; round < 3; ++round) {
        std::vector<std::optional<std::string>> answers(20);
        for (auto& answer : answers) client.begin("GetWorkloads", note_error, &answer);
        client.pump([&] {
          return std::all_of(answers.begin(), answers.end(),
                             [](const auto& answer) { return answer.has_value(); });
        });
        for (auto& answer : answers) errors.push_back(*std::move(answer));
      }
      return errors;
    });
  };
  const auto errors = errors_of(kNobody);
  EXPECT_EQ(errors.front(), "");
  EXPECT_NE(std::count(errors.begin(), errors.end(), std::string(bus::kLimitsExceeded)), 0);
  for (const std::string& error : errors_of(0)) EXPECT_EQ(error, "");
}

// The bus takes what a client does not read only up to a limit of its own, and berth keeps the rest.
TEST_F(Flood, AClientThatDoesNotReadItsAnswersDoesNotFillTheMemory) {
  constexpr std::size_t kCalls = 100;
  // The bus takes ten of these for a client, or some more. Of one client, 32 calls wait until its user is
  // known.
  constexpr std::size_t kMoreThanTheBusTakes = 20;
  control_.listed.assign(std::size_t{12} << 20, ' ');
  std::promise<void> asked;
  std::promise<void> served;
  // Root, which may read as much as it likes.
  auto client = std::async(std::launch::async, [&] {
    PlainClient plain;
    std::vector<std::optional<std::string>> answers(kCalls);
    for (auto& answer : answers) plain.begin("GetWorkloads", note_message, &answer);
    plain.flush();
    asked.set_value();
    served.get_future().wait();
    plain.pump([&] {
      return std::all_of(answers.begin(), answers.end(),
                         [](const auto& answer) { return answer.has_value(); });
    });
    return answers;
  });
  asked.get_future().wait();
  serve_until([&] { return control_.lists >= kMoreThanTheBusTakes; });
  served.set_value();
  serve_until([&] { return client.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  std::size_t refused = 0;
  for (const auto& message : client.get())
    if (message && message->find("does not read its own") != std::string::npos) ++refused;
  EXPECT_GT(refused, 0U);
  EXPECT_EQ(service_->link(), daemon::Link::up);
}

}  // namespace berth::test
