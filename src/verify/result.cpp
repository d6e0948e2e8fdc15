// Names of outcomes, and what counters and a self-test amount to.
#include "rdma_read/verify/result.hpp"

namespace rdma_read::verify {

std::string_view to_string(Outcome outcome) noexcept {
    switch (outcome) {
        case Outcome::pass:
            return "PASS";
        case Outcome::corrupt:
            return "CORRUPT";
        case Outcome::slow:
            return "SLOW";
        case Outcome::connect_failed:
            return "CONNECT_FAILED";
        case Outcome::read_failed:
            return "READ_FAILED";
        case Outcome::timeout:
            return "TIMEOUT";
        case Outcome::no_device:
            return "NO_DEVICE";
        case Outcome::setup_failed:
            return "SETUP_FAILED";
        case Outcome::not_run:
            break;
    }
    return "NOT_RUN";
}

std::optional<bool> Result::degraded() const noexcept {
    return counters ? std::optional(!counters->empty()) : std::nullopt;
}

bool SelfTest::proved() const noexcept {
    return planted_error_found == true && wrong_key_refused == true
           && out_of_bounds_refused == true;
}

bool SelfTest::disproved() const noexcept {
    return planted_error_found == false || wrong_key_refused == false
           || out_of_bounds_refused == false;
}

}  // namespace rdma_read::verify
