// Writes the seeds that are bytes rather than text: make_seeds FOLDER, the folder that holds this
// file.
#include "rdma_read/rdma/wire.hpp"
#include "rdma_read/verify/codec.hpp"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <string>

using namespace rdma_read;

namespace {

class Seeds {
  public:
    explicit Seeds(std::filesystem::path folder) : folder_(std::move(folder)) {
        std::filesystem::create_directories(folder_);
    }
    void write(const std::string& name, std::span<const std::byte> bytes) const {
        std::ofstream file(folder_ / name, std::ios::binary);
        file.exceptions(std::ios::badbit | std::ios::failbit);
        file.write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
    }

  private:
    std::filesystem::path folder_;
};

verify::Result full_result() {
    verify::Result result;
    result.server_rank = 0;
    result.reader_rank = 1;
    result.server_host = "node1";
    result.reader_host = "node2";
    result.outcome = verify::Outcome::corrupt;
    result.phase = "check";
    result.error = "wrong data";
    result.hint = "look at dmesg";
    result.path.local_device = "mlx5_0";
    result.path.local_port_num = 1;
    result.connect_ms = 1.5;
    result.attempts = 2;
    result.counters = {{"rcvd_seq_err", 3}};
    result.notes = {"a note"};
    verify::SizeResult& size = result.sizes.emplace_back();
    size.size = 4096;
    size.reads = 10;
    size.mismatches.push_back({});
    size.latency_us.emplace();
    return result;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: make_seeds FOLDER\n";
        return 2;
    }
    const std::filesystem::path folder(argv[1]);
    const rdma::RunId run{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

    const Seeds wire(folder / "wire");
    wire.write("hello", rdma::encode(rdma::Hello{run, 3, 1}));
    wire.write("refusal", rdma::encode(rdma::Refusal::other_run));
    wire.write("ready", rdma::encode_ready());
    wire.write("descriptor", rdma::encode(rdma::RemoteBuffer{0x7f0000000000, 65536, 0xabcd}));

    const Seeds codec(folder / "codec");
    codec.write("result", verify::encode(full_result()));
    codec.write("empty_result", verify::encode(verify::Result{}));
    verify::ServerInfo server;
    server.host = "node1";
    server.rate_gbps = 100;
    codec.write("server", verify::encode(server));
    verify::Announcement announcement;
    announcement.usable = true;
    announcement.server = server;
    codec.write("announcement", verify::encode(announcement));
    return 0;
}
