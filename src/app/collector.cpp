// The gather of results at the root.
#include "app/collector.hpp"

#include "app/say.hpp"
#include "rdma_read/verify/codec.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

namespace rdma_read::app {

Collector::Collector(cluster::Communicator& communicator, const verify::Announcement& announcement,
                     const std::vector<std::string>& hosts)
    : communicator_(communicator),
      announcement_(announcement),
      hosts_(hosts),
      expected_(static_cast<std::size_t>(communicator.size()) - 1) {}

void Collector::add(verify::Result result) {
    const int rank = result.reader_rank;
    results_.emplace(rank, std::move(result));
}

void Collector::take_messages() {
    while (auto message = communicator_.try_receive(static_cast<int>(Tag::result))) {
        if (message->source == announcement_.server_rank) {
            continue;
        }
        try {
            if (!message->error.empty()) {
                throw verify::CodecError(message->error);
            }
            verify::Result result = verify::decode_result(message->bytes);
            // Who it is from is known from MPI, whatever it says of itself.
            result.reader_rank = message->source;
            result.server_rank = announcement_.server_rank;
            add(std::move(result));
        } catch (const verify::CodecError& error) {
            verify::Result result;
            result.reader_rank = message->source;
            result.server_rank = announcement_.server_rank;
            result.server_host = announcement_.server.host;
            result.reader_host = hosts_.at(static_cast<std::size_t>(message->source));
            result.phase = "gather";
            result.error = fmt::format("the result of rank {} cannot be read: {}", message->source,
                                       error.what());
            result.hint = "all ranks must run the same build of this program";
            add(std::move(result));
        }
    }
}

void Collector::collect(cluster::Wait wait,
                        const std::function<void(std::size_t, std::size_t)>& progress) {
    // Results arrive within seconds, not microseconds: rank 0 is likely the server, and its core
    // belongs to the readers' traffic.
    constexpr std::chrono::milliseconds kPause{5};
    for (;;) {
        take_messages();
        progress(results_.size(), expected_);
        if (complete() || std::chrono::steady_clock::now() >= wait.deadline
            || (wait.stop != nullptr && wait.stop->load())) {
            return;
        }
        std::this_thread::sleep_for(kPause);
    }
}

std::vector<verify::Result> Collector::results(verify::Outcome outcome, const std::string& reason,
                                               const std::string& hint) const {
    std::vector<verify::Result> all;
    for (int rank = 0; rank < communicator_.size(); ++rank) {
        if (rank == announcement_.server_rank) {
            continue;
        }
        if (const auto found = results_.find(rank); found != results_.end()) {
            all.push_back(found->second);
            continue;
        }
        verify::Result missing;
        missing.server_rank = announcement_.server_rank;
        missing.server_host = announcement_.server.host;
        missing.reader_rank = rank;
        missing.reader_host = hosts_.at(static_cast<std::size_t>(rank));
        missing.outcome = outcome;
        missing.phase = "gather";
        missing.error = reason;
        missing.hint = hint;
        all.push_back(std::move(missing));
    }
    return all;
}

}  // namespace rdma_read::app
