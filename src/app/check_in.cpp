// Ranks come together before anything is opened.
#include "app/check_in.hpp"

#include "app/collector.hpp"
#include "app/host.hpp"
#include "app/say.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <span>
#include <sstream>
#include <stdexcept>
#include <type_traits>

namespace rdma_read::app {

namespace {

// What the root needs to report on ranks that did not come, before the others give up.
constexpr std::chrono::seconds kGrace{5};
// A host name and all options fit many times.
constexpr std::size_t kLongestText = 16384;

std::string text_of(const verify::OptionValue& value) {
    return std::visit(
        [](const auto& held) -> std::string {
            using T = std::decay_t<decltype(held)>;
            if constexpr (std::is_same_v<T, std::monostate>) {
                return "-";
            } else if constexpr (std::is_same_v<T, std::vector<std::uint64_t>>) {
                return fmt::format("{}", fmt::join(held, ","));
            } else {
                return fmt::format("{}", held);
            }
        },
        value);
}

// What ranks must agree on: everything but what concerns the root alone.
std::string common_options(const Options& options) {
    std::string text;
    for (const auto& [name, value] : options_for_report(options)) {
        if (name != "json" && name != "progress") {
            text += fmt::format("{}={} ", name, text_of(value));
        }
    }
    return text;
}

// What stands for the options where the command line was a question (code 0) or wrong.
constexpr std::string_view kAsked = "?";
constexpr std::string_view kWrong = "!";

std::string wish(const Options* options, int early_code) {
    if (options != nullptr) {
        return common_options(*options);
    }
    return std::string(early_code == 0 ? kAsked : kWrong);
}

// "host\nwish".
std::vector<std::byte> introduction(const std::string& wish) {
    const std::string text = fmt::format("{}\n{}", host_name(), wish);
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

struct Introduction {
    std::string host = "?";
    std::string options = std::string(kWrong);
};

Introduction read_introduction(const cluster::Message& message) {
    std::string text;
    const auto shown = std::span(message.bytes).first(std::min(message.bytes.size(), kLongestText));
    std::ranges::transform(shown, std::back_inserter(text),
                           [](std::byte byte) { return static_cast<char>(byte); });
    const std::size_t end = text.find('\n');
    if (!message.error.empty() || end == std::string::npos) {
        return {};
    }
    return {text.substr(0, end), text.substr(end + 1)};
}

// The items of two lists of options that differ, "depth=8 and depth=16, …".
std::string differences(const std::string& one, const std::string& other) {
    const auto items = [](const std::string& text) {
        std::istringstream words(text);
        return std::vector<std::string>(std::istream_iterator<std::string>(words), {});
    };
    const auto left = items(one);
    const auto right = items(other);
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
        if (left[i] != right[i]) {
            texts.push_back(fmt::format("{} and {}", left[i], right[i]));
        }
    }
    return fmt::format("{}", fmt::join(texts, ", "));
}

// The exit code without a run, decided by the root, and what it says; nothing if there is a run.
struct Decision {
    std::optional<int> exit_code;
    std::string text;
};

Decision decide(const std::vector<Introduction>& all, const Options* options) {
    const auto is_asked = [](const auto& rank) { return rank.options == kAsked; };
    const auto is_early = [&](const auto& rank) {
        return is_asked(rank) || rank.options == kWrong;
    };
    if (std::ranges::any_of(all, is_early)) {
        return {std::ranges::all_of(all, is_asked) ? 0 : kExitUsage, ""};
    }
    const auto other = std::ranges::find_if(
        all, [&](const auto& rank) { return rank.options != all.front().options; });
    if (other != all.end()) {
        return {kExitUsage,
                fmt::format("{}: rank {} was started with other options than rank 0 ({}); give all "
                            "programs of a job the same options\n",
                            kMpiProgram, other - all.begin(),
                            differences(other->options, all.front().options))};
    }
    if (auto problem = contradiction_with_ranks(*options, static_cast<int>(all.size()))) {
        return {kExitUsage, std::move(*problem)};
    }
    if (auto problem = contradiction_with_files(*options)) {
        return {kExitUsage, std::move(*problem)};
    }
    return {};
}

}  // namespace

CheckIn check_in(cluster::Communicator& communicator, const Options* options, int early_code,
                 const std::atomic<bool>& stop, std::chrono::seconds patience) {
    const std::string own_wish = wish(options, early_code);
    CheckIn result;
    std::vector<std::byte> go(1);
    if (communicator.rank() != kRootRank) {
        const auto wait = cluster::Wait::lasting(patience + kGrace);
        if (!communicator.send(kRootRank, static_cast<int>(Tag::presence), introduction(own_wish),
                               wait)
            || !communicator.broadcast(go, kRootRank, wait)) {
            throw std::runtime_error(fmt::format("rank {} was not heard of within {} s", kRootRank,
                                                 (patience + kGrace).count()));
        }
    } else {
        const auto wait_or_stop = cluster::Wait::lasting(patience, &stop);
        std::vector<Introduction> all(static_cast<std::size_t>(communicator.size()));
        all.front() = {host_name(), own_wish};
        result.hosts.resize(all.size());
        result.hosts.front() = all.front().host;
        for (std::size_t heard = 1; heard < all.size(); ++heard) {
            const auto message =
                communicator.receive(static_cast<int>(Tag::presence), wait_or_stop);
            if (!message && options != nullptr) {
                return result;
            }
            if (!message) {
                throw std::runtime_error(fmt::format(
                    "{} of {} ranks had not come when {}", all.size() - heard, all.size(),
                    stop ? "this one was told to stop"
                         : fmt::format("{} s were over", patience.count())));
            }
            const auto source = static_cast<std::size_t>(message->source);
            all.at(source) = read_introduction(*message);
            result.hosts.at(source) = all.at(source).host;
        }
        const Decision decision = decide(all, options);
        print_to_stderr(decision.text);
        result.exit_code = decision.exit_code;
        go = {decision.exit_code ? std::byte{0} : std::byte{1}};
        // Who is told to stop by now reports all ranks that have come.
        if (!communicator.broadcast(go, kRootRank, wait_or_stop) && (!stop || decision.exit_code)) {
            throw std::runtime_error(
                fmt::format("not all ranks were told to go on within {} s", patience.count()));
        }
    }
    if (communicator.rank() != kRootRank && go != std::vector{std::byte{1}}) {
        // The root's status is the job's; two would make the launcher say everything twice.
        result.exit_code = 0;
    }
    return result;
}

}  // namespace rdma_read::app
