"""Deliberate defects, and what it takes the simulation to find each.

Builds the simulation from a copy of the checkout, once per defect, and runs seeds from 1 on until one
fails. A defect that outlives all of them is an error: then the simulation does not test what it says.
Where it takes a moment that no seed meets, a unit test must find it.

    mutations.py [--seeds N] [--build DIR] [--check] [name ...]

Prints one line of a table for each. A text to be replaced that is not there, or is there twice, is an
error too: the sources have moved on, and the defect must follow.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import List, NamedTuple, Optional

ROOT = Path(__file__).resolve().parents[3]
NOT_COPIED = ("build", ".*")


class Mutation(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    kind: str = ""  # of the seeds that are to find it: an option of sim
    test: str = ""  # instead of seeds: a test program below src, and which of its tests


MUTATIONS = [
    # durability
    Mutation("commit before data are synced", "src/recovery/commit.cpp",
             "Status done = RankBlocks(files, folder, record).sync(synced);", "Status done;"),
    Mutation("prepared record is not synced", "src/recovery/commit.cpp",
             "return durable ? file->sync() : Status{};", "return {};"),
    Mutation("rename of the record is not synced", "src/recovery/commit.cpp",
             "return store.durable() ? files.sync_folder(folder.path) : Status{};", "return {};"),
    Mutation("names of folders are not synced", "src/cache/store.cpp",
             "if (!durable_) return {};", "return {};"),
    Mutation("the job's folder is not synced", "src/cache/store.cpp",
             "if (!memory)\n", "if (false)\n"),
    Mutation("record is not gone before its data", "src/cache/store.cpp",
             "durable_ ? files_->sync_folder(folder.path) : Status{}", "Status{}"),
    Mutation("repaired blocks are not synced", "src/redundancy/repair.cpp",
             "return options.durable ? blocks.sync() : Status{};", "return {};"),
    Mutation("moved files are not synced", "src/recovery/restore.cpp",
             "return durable ? blocks.sync() : Status{};", "return durable && false ? blocks.sync() : Status{};"),
    Mutation("replaced record is not synced", "src/files/files.cpp",
             "if (durable) CAIRN_TRY(file.sync());", ""),
    # protection behind the program
    Mutation("a written record is not agreed upon", "src/recovery/commit.cpp",
             "if (status) status = write_prepared(files, false, folder, encode(record));\n"
             "  CAIRN_TRY(agree(comm, std::move(status)));",
             "if (status) status = write_prepared(files, false, folder, encode(record));\n"
             "  CAIRN_TRY(status);", "--behind"),
    Mutation("the boot of the node is not compared", "src/recovery/written.cpp",
             "record.exposure->boot.empty() || record.exposure->boot != files.boot()", "false",
             "--behind"),
    Mutation("what was written is not synced when it gets its checksums", "src/recovery/written.cpp",
             "Status synced = RankBlocks(files, folder, record).sync(&of_data);", "Status synced; (void)record;",
             "--behind"),
    Mutation("a broken job passes for one that has ended well", "src/session/late_protection.cpp",
             "{running, running == 0 && job_->is_broken}", "{running, 0}", "--behind"),
    Mutation("a dataset counts as protected while ranks still work at it",
             "src/session/late_protection.cpp", "  if (is_running_) return std::nullopt;\n", "",
             "--behind"),
    Mutation("a written dataset makes room for itself at once", "src/session/dataset_writer.cpp",
             "late_.begin(current_, level());",
             "late_.begin(current_, level());\n  cached_.evict(comm, current_.store, 0);", "--behind"),
    Mutation("a later try has the generation of the first", "src/session/late_protection.cpp",
             "record.encoding.generation = later_generation(comm, clock, before);",
             "record.encoding.generation = 2 + 0 * later_generation(comm, clock, before);", "--behind"),
    Mutation("what is superseded goes although the newer one is not protected", "src/session/late_protection.cpp",
             "if (status) {\n        give_way", "{\n        give_way", "--behind"),
    Mutation("what is superseded loses files before all its records", "src/session/late_protection.cpp",
             "behind.barrier();", "", test="session/session_test SessionBehind.*"),
    Mutation("Init offers what was written without protecting it", "src/session/recover_cache.cpp",
             "members.size() == 1 && level->encoding.members.size() > 1", "false", "--behind"),
    Mutation("only the own set agrees before what is protected is committed", "src/recovery/commit.cpp",
             "CAIRN_TRY(agree(comm, std::move(status)));\n  return agree(comm, commit_prepared",
             "CAIRN_TRY(agree(set, std::move(status)));\n  return agree(comm, commit_prepared", "--behind"),
    Mutation("what is superseded goes once the own set has committed", "src/recovery/commit.cpp",
             "  return agree(comm, commit_prepared(files, store, folder, has_committed));\n}\n\n}  // namespace",
             "  return agree(set, commit_prepared(files, store, folder, has_committed));\n}\n\n}  // namespace", "--behind"),
    Mutation("ranks know different things of what one has committed", "src/session/late_protection.cpp",
             "return allreduce(comm, job_->mine.has_committed ? 1 : 0, Reduce::max) != 0;",
             "(void)comm;\n  return job_->mine.has_committed;", "--behind"),
    Mutation("a later generation may be that of a run that died", "src/recovery/commit.cpp",
             "static_cast<std::uint64_t>(std::max(newest[1] + 1, newest[0]))",
             "static_cast<std::uint64_t>(newest[1] + 1)", "--behind"),
    Mutation("Start does not wait for what is written", "src/session/session.cpp",
             "  calls_.finish_protection(Calls::Waits::for_copies);\n  flushing_.look_for_absent_prefix(comm_);",
             "  flushing_.look_for_absent_prefix(comm_);", "--behind"),
    Mutation("SCR_Delete does not wait for what is written", "src/session/named_datasets.cpp",
             "  CAIRN_TRY(calls_.enter_alone(\"SCR_Delete\", fmt::format(\"name \\\"{}\\\"\", name)));",
             "  CAIRN_TRY(calls_.enter(\"SCR_Delete\", Phase::idle));\n"
             "  CAIRN_TRY(flushing_.wait_for_copies(calls_.comm()));", "--behind"),
    Mutation("no call returns a late failure", "src/session/calls.cpp",
             "return status ? std::exchange(late_failure_, Status{}) : status;", "return status;", "--behind"),
    Mutation("what the program has changed is protected all the same", "src/recovery/commit.cpp",
             "    Status unchanged = check_unchanged(files, record, paths);\n", "    Status unchanged;\n", "--behind"),
    Mutation("checksums of what was written cost what was prepared later", "src/recovery/written.cpp",
             "return !held.committed && held.record.exposure;", "return !held.committed;", "--behind"),
    # messages beside MPI
    Mutation("a connection that breaks counts as a death", "src/comm/peer_failure.cpp",
             "    else\n      lost(link);", "    else\n      died(rank);", test="comm/comm_test PeerReset.*"),
    Mutation("a death after a lost connection is no news", "src/comm/peer_failure.cpp",
             "if (failed_ && (!is_death || is_death_ || is_stopping_)) return;", "if (failed_) return;",
             test="comm/comm_test *PeerLoss.*"),
    Mutation("a message goes on into a buffer that was withdrawn", "src/comm/peer_messages.cpp",
             "    link->divert(operation.buffer);\n", "", test="comm/comm_test PeerNetwork.*"),
    Mutation("a farewell amid messages is no failure", "src/comm/peer_messages.cpp",
             "  if (has_messages_with(left))\n", "  if (false)\n", test="comm/comm_test PeerEnd.*"),
    Mutation("a failure is not passed on", "src/comm/peer_failure.cpp",
             "  send_error(Frame::Kind::failed, 0, *failed_);\n", "", test="comm/comm_test PeerDeath.*"),
    Mutation("a task that fails on one rank ends on no other", "src/comm/task_queue.cpp",
             "    network->cancel(task.channel, unwound);\n", "", test="comm/comm_test TaskQueue.*"),
    Mutation("another node's boot counts in a store that all see", "src/session/late_protection.cpp",
             "!level.settings.bypass &&\n         !run_.stores[level.store].shared();", "!level.settings.bypass;", "--behind"),
    # system calls
    Mutation("an interrupted call is not made again", "src/files/uninterrupted.hpp",
             "while (result == -1 && errno == EINTR) result = call();", ""),
    Mutation("a short read passes for a whole one", "src/files/uninterrupted.hpp",
             "if (got == 0) break;\n    done += static_cast<std::size_t>(got);",
             "if (got == 0) break;\n    done = buffer.size();"),
    Mutation("an error names no file", "src/files/uninterrupted.hpp",
             "errno_error(put < 0 ? errno : EIO, \"write\", path)",
             "errno_error(put < 0 ? errno : EIO, \"write\", \"a file\")"),
    Mutation("an error names no node", "src/comm/communicator.cpp",
             "if (concerns_files(error) && !comm.place()", "if (false && !comm.place()"),
    Mutation("a full store is printed without a remedy", "src/base/error.cpp",
             "cached ? \"free space there, or set SCR_CACHE_BASE to a larger store\"", "cached ? \"\""),
    # the background
    Mutation("Finalize does not wait for removals", "src/session/session.cpp",
             "run_.background.wait();  // the next holder of the lock finds nothing on its way", ""),
    Mutation("a spare outlives Finalize", "src/session/session.cpp",
             "  cached_.drop_spares();\n  comm_.barrier();", "  comm_.barrier();"),
    # order and agreement
    Mutation("evict before protect", "src/session/dataset_writer.cpp",
             "old_goes_first = !run_.settings.keep_old && info.is_checkpoint() &&",
             "old_goes_first = info.is_checkpoint() &&"),
    Mutation("an output takes a checkpoint's place", "src/session/dataset_writer.cpp",
             "old_goes_first = !run_.settings.keep_old && info.is_checkpoint() && !info.is_output()",
             "old_goes_first = !run_.settings.keep_old"),
    Mutation("no agreement before the commit", "src/recovery/commit.cpp",
             "CAIRN_TRY(agree(comm, std::move(status)));\n  return agree(comm, commit_prepared",
             "CAIRN_TRY(std::move(status));\n  return agree(comm, commit_prepared"),
    Mutation("a part declared invalid is committed", "src/session/dataset_writer.cpp",
             "if (!valid) return fail(", "if (false) return fail("),
    Mutation("prepared counts as committed", "src/cache/catalog.cpp",
             "add_records(part, *prepared, false);", "add_records(part, *prepared, true);"),
    Mutation("one dataset too many is evicted", "src/session/cached_datasets.cpp",
             "++checkpoints > keep", "++checkpoints >= keep"),
    Mutation("outputs are evicted like checkpoints", "src/session/cached_datasets.cpp",
             "if (dataset.awaits_copy()) return false;\n", ""),
    Mutation("an output that waits for its nodes is evicted", "src/session/cached_datasets.cpp",
             "if (dataset.awaits_copy()) return false;",
             "if (dataset.usable() && dataset.awaits_copy()) return false;"),
    Mutation("what is no checkpoint takes a checkpoint's place", "src/session/cached_datasets.cpp",
             "if (dataset.info.is_checkpoint())\n      return is_safe(dataset)", "return is_safe(dataset)"),
    Mutation("what is no checkpoint hides the restart", "src/session/session.cpp",
             "if (done && is_checkpoint) restarting_.note_checkpoint();",
             "if (done) restarting_.note_checkpoint();"),
    Mutation("what is no checkpoint gives up one whose nodes are away", "src/session/cached_datasets.cpp",
             "newer_is_safe = newer_is_safe || (is_safe(dataset) && dataset.info.is_checkpoint());",
             "newer_is_safe = newer_is_safe || is_safe(dataset);"),
    Mutation("SCR_Current asks no ranks", "src/session/named_datasets.cpp",
             "  if (!there) CAIRN_TRY(restarting_.check_ranks());\n", ""),
    Mutation("ranks know different things of a lost dataset", "src/session/recover_cache.cpp",
             "dataset.info = known_to_all;",
             "if (held.parts.empty()) dataset.info.checkpoint = 0;"),
    # protection
    Mutation("checksums are not compared", "src/redundancy/block_check.cpp",
             "const bool good = crc32c(block) == crcs[index];",
             "const bool good = block.size() > 0 || crcs[index] == 0;"),
    Mutation("a truncated file passes for whole", "src/redundancy/rank_blocks.cpp",
             "return info && info->kind == Kind::file && info->size == extent.size;",
             "return info && info->kind == Kind::file;"),
    Mutation("PARTNER holds no two lost members", "src/redundancy/damage.cpp",
             "if (static_cast<int>(stripe.lost.size()) > layout_.parity()) return",
             "int hurt = 0;\n"
             "for (const Erasures& each : erasures_) hurt += contains(each.data, rows.begin) ? 1 : 0;\n"
             "if (static_cast<int>(stripe.lost.size()) > layout_.parity() ||\n"
             "    (!stripe.lost.empty() && layout_.columns() == 1 && hurt > layout_.parity())) return"),
    Mutation("second parity on a member that has data", "src/records/set_layout.cpp",
             ": wrap(position + i);", ": wrap(position + 2 * i);"),
    Mutation("both parities of Reed-Solomon are the same", "src/codec/erasure_code.cpp",
             "(data + row) ^ column", "(data + row / 2 * 2) ^ column"),
    Mutation("a stripe begins with what was there before", "src/codec/combination.cpp",
             "std::fill(target.begin() + static_cast<std::ptrdiff_t>(block.size()), target.end(),\n"
             "              std::byte{0});", ""),
    Mutation("restart does not check the blocks again", "src/session/restarting.cpp",
             "      check_and_heal(comm, run_.files, run_.stores, run_.settings, dataset, run_.own_log);\n", "      {};\n"),
    Mutation("an error while writing parity is swallowed", "src/redundancy/protect.cpp",
             "note(blocks_.write_parity(index, parity));",
             "if (!blocks_.write_parity(index, parity)) return;"),
    Mutation("parity is not kept by generation", "src/records/rank_folder.hpp",
             "std::to_string(generation)", "std::to_string(generation * 0 + 1)"),
    Mutation("no copies of others' records", "src/redundancy/replicas.cpp",
             "for (const Blob& record : kept) content.insert(content.end(), record.begin(), "
             "record.end());", "(void)kept;"),
    Mutation("crowded sets are left as they are", "src/session/recover_cache.cpp",
             "if (is_crowded == 0 && lacks_sets == 0) return {};", "if (lacks_sets == 0) return {};"),
    # what is taken away on purpose, and what must not be touched
    Mutation("SCR_Delete forgets and does not remove", "src/session/named_datasets.cpp",
             "    cached_.remove(comm, cached_.all()[i]);\n", ""),
    Mutation("SCR_Delete does not wait for the removal", "src/session/named_datasets.cpp",
             "cached_.wait_for_removal(comm);  // the room is there",
             "comm.barrier();  // the room is there"),
    Mutation("SCR_Current leaves what is newer", "src/session/restarting.cpp",
             "return named->uuid < dataset.info.uuid &&", "return false &&"),
    Mutation("SCR_CACHE_PURGE removes nothing", "src/session/recover_cache.cpp",
             "for (const HeldPart& part : dataset.parts) CAIRN_TRY(store.remove(part.folder));",
             "(void)dataset;"),
    Mutation("another number of ranks is not refused", "src/restart/restart_choice.cpp",
             "return is_elsewhere ? nullptr : mismatched(datasets);",
             "return is_elsewhere ? mismatched(datasets) : nullptr;"),
    Mutation("SCR_DISTRIBUTE=0 is not heeded", "src/recovery/survey.cpp",
             "if (!distribute) return CacheState::left_alone;", "(void)distribute;"),
    Mutation("other ranks than wrote it remove what may be committed elsewhere", "src/recovery/survey.cpp",
             "return CacheState::maybe_incomplete;", "return CacheState::incomplete;"),
    # cleaning
    Mutation("uncommitted remains stay", "src/session/recover_cache.cpp",
             "warn(stores_[summary.store].remove(part.folder));", "(void)part;"),
    Mutation("an empty dataset folder stays", "src/cache/catalog.cpp",
             "if (names.empty()) return empty == EmptyFolders::removed ? files.remove_folder(folder) : Status{};",
             "(void)empty;"),
    Mutation("files of other generations stay", "src/recovery/restore.cpp",
             "warn(remove_leftovers());", ""),
    Mutation("moved copies stay where they were", "src/session/recover_cache.cpp",
             "      remove_what_is_elsewhere(dataset);\n    else", "      (void)dataset;\n    else"),
    # the prefix directory
    Mutation("staged files are not synced", "src/prefix/flush_plan.cpp",
             "{keep ? file_for_owner : file_for_all, keep, true, true, past_cache, site.repairs, is_mine}",
             "{keep ? file_for_owner : file_for_all, keep, false, true, past_cache, site.repairs, is_mine}", "--prefix"),
    Mutation("staged names are not synced", "src/prefix/flush_plan.cpp",
             " throttle));\n  return sync_folders(site.files, site.folder, record);",
             " throttle));\n  return {};", "--prefix"),
    Mutation("a part is marked before it is done", "src/prefix/flush_plan.cpp",
             "  CAIRN_TRY(stage(site, plan, record, cached));\n"
             "  return DoneMarkers(site.files, plan, record.dataset.ranks).mark(record.rank);",
             "  CAIRN_TRY(DoneMarkers(site.files, plan, record.dataset.ranks).mark(record.rank));\n"
             "  return stage(site, plan, record, cached);", "--prefix"),
    Mutation("what one rank could not copy is published", "src/prefix/flush.cpp",
             "CAIRN_TRY(agree(comm, std::move(done)));",
             "(void)agree(comm, std::move(done));", "--prefix"),
    Mutation("a dead flush is published though parts are missing", "src/prefix/publication.cpp",
             "return whole ? reach(State::staged, {}) : Status{};",
             "(void)whole;\n  return reach(State::staged, {});", "--prefix"),
    Mutation("publishing is not synced", "src/prefix/epoch_folder.cpp",
             "Status durable = files_.sync_folder(folder_.datasets());", "Status durable;",
             "--prefix"),
    Mutation("the directory of a plan is not synced", "src/prefix/epoch_folder.cpp",
             "  CAIRN_TRY(files_.sync_folder(pending));\n  return files_.sync_folder(folder_.epoch(epoch_));",
             "  return {};", "--prefix"),
    Mutation("a marker is believed without its sibling", "src/prefix/flush_plan.cpp",
             "if (!both) return false;", "(void)both;", "--prefix"),
    Mutation("own names are not synced", "src/prefix/flush_plan.cpp",
             "for (const std::string& path : folders_of(folder, record))\n"
             "    CAIRN_TRY(sync_folder_in(files, folder, path));", "", "--prefix"),
    Mutation("the listing of before stays while a dataset is published", "src/prefix/keeper.cpp",
             "  CAIRN_TRY(open_listing());\n  bool is_there", "  bool is_there", "--prefix"),
    Mutation("remains of a dead flush stay", "src/prefix/publication.cpp",
             "return remove_part(site_.files, site_.folder, folder_, record);",
             "(void)record;\n                 return Status{};", "--prefix"),
    Mutation("what was due when a run died is forgotten", "src/session/flushing.cpp",
             "due_.want_newest_if_overdue(comm);", "", "--prefix"),
    Mutation("SCR_FLUSH_ON_RESTART is not heeded", "src/session/flushing.cpp",
             "flush_due(comm, {}, run_.settings.flush_on_restart)", "flush_due(comm, {})", "--prefix"),
    Mutation("a run from scratch does not say so", "src/session/restarting.cpp",
             "    if (decision.step == RestartStep::start_fresh) warn_from_scratch(decision.why);\n", "", "--prefix"),
    Mutation("an older one is taken without a word", "src/session/fetching.cpp",
             "run_.shared_log.warning(\"{} in {} cannot be used: {}\"",
             "run_.shared_log.info(\"{} in {} cannot be used: {}\"", "--prefix"),
    # the decision
    Mutation("what cannot be read now is no reason to wait", "src/restart/restart_decision.cpp",
             "if (found.may_pass && settings_.on_fetch_fail != OnFetchFail::fresh)", "if (false)",
             "--trouble"),
    Mutation("the cache goes before what is newer", "src/restart/restart_decision.cpp",
             "if (const auto decision = step_in_prefix()) return *decision;\n", "\n", "--prefix"),
    Mutation("one that failed is tried again", "src/restart/restart_decision.cpp",
             "if (is_of_prefix(attempt.step) || is_lost) tried.insert(attempt.dataset);",
             "if (is_lost) tried.insert(attempt.dataset);", "--trouble"),
    # what was flushed is damaged, named, and restarted from in vain
    Mutation("SCR_Drop drops nothing", "src/prefix/retention.cpp",
             "CAIRN_TRY(keeper.drop(record.info));\n    return keeper.save_listing();",
             "(void)record;\n    return keeper.save_listing();", "--trouble"),
    Mutation("SCR_Current is forgotten", "src/session/prefix_side.cpp",
             "    CAIRN_TRY(choose_current(owner_.site(), keeper, record.info));\n", "", "--trouble"),
    Mutation("SCR_Delete leaves the prefix directory as it is", "src/session/named_datasets.cpp",
             "return unless_absent(prefix_.remove(comm, name));", "return {};", "--trouble"),
    Mutation("files of what is deleted stay", "src/prefix/remove_files.cpp",
             "    return site_.files.remove_file(path);\n", "    return {};\n",
             "--trouble"),
    Mutation("restarts that died are not counted", "src/prefix/attempt_book.cpp",
             "  ++record.attempts;\n", "", "--trouble"),
    Mutation("a restart that went well is counted", "src/prefix/attempt_book.cpp",
             "    record.attempts = 0;\n    record.quarantined = false;\n", "(void)record;", "--trouble"),
    Mutation("what is fetched is not compared", "src/prefix/copy_files.cpp",
             "if (crc32c(bytes) != record_.data_crcs[block])", "if (false)", "--trouble"),
    Mutation("what was bypassed is not synced", "src/prefix/in_place.cpp",
             "CAIRN_TRY(file->sync_all());", "", "--bypass"),
    # copies in the background
    Mutation("a plan is published that is not durable", "src/prefix/epoch_folder.cpp",
             "  const Status planned = files_.sync_folder(pending);\n", "  const Status planned;\n",
             "--async"),
    Mutation("files get their names before the dataset is published", "src/prefix/async_flush.cpp",
             "  if (!epoch_folder(site_).is_published(record_.dataset)) {\n"
             "    CAIRN_TRY(refuse_if_gone());\n    return false;\n  }\n",
             "", "--async"),
    Mutation("names are taken before the rename that publishes is durable", "src/prefix/async_flush.cpp",
             "  CAIRN_TRY(site_.files.sync_folder(site_.folder.datasets()));\n", "", "--async"),
    Mutation("a dataset is settled before all files have their names", "src/prefix/async_flush.cpp",
             "  if (waits) return false;\n", "  (void)waits;\n", "--async"),
    Mutation("a flight is over when the own part is", "src/session/flush_queue.cpp",
             "&& (owner == nullptr || owner->is_settled())", "", "--async"),
    Mutation("a flight is over after any step", "src/session/flush_queue.cpp",
             "if (flight.is_over()) entry.news.fate", "if (flight.is_over() || *moved) entry.news.fate", "--async"),
    Mutation("the newest flight is taken for the first", "src/session/flush_queue.cpp",
             "entries_.pop_front();", "entries_.pop_back();", "--async"),
    Mutation("a flight that has begun is withdrawn", "src/session/flush_queue.cpp",
             "entry.flight->dataset.uuid == dataset && !entry.flight->is_taken;",
             "entry.flight->dataset.uuid == dataset;", test="session/session_test SessionAsyncOrder.*"),
    Mutation("both threads take a step", "src/session/flush_queue.cpp",
             "return lock ? step() : not_my_turn_us;", "return lock ? step() : step();", "--async"),
    Mutation("a thread that helps is not waited for", "src/transfer/urgent_help.cpp",
             "while (is_helping()) clock_", "while (is_helping() && until_helped_us == 0) clock_", "--async"),
    Mutation("a damaged flight is never taken up again", "src/session/flush_queue.cpp",
             "  entries_.front().news = {};\n", "", "--async"),
    Mutation("a flight is over when it is on one rank", "src/session/async_flushing.cpp",
             "comm.allreduce(any, Reduce::max);\n    const auto [is_on_its_way",
             "comm.allreduce(any, Reduce::max);\n"
             "    any[0] = allreduce(comm, news.fate != Fate::over ? 1 : 0, Reduce::min);\n"
             "    const auto [is_on_its_way", "--async"),
    Mutation("what is in flight is not marked", "src/session/async_flushing.cpp",
             "  here->is_in_flight = true;\n", "", "--async"),
    Mutation("the end of a run does not wait for copies", "src/session/flushing.cpp",
             "  const Status over = wait_for_copies(comm);\n", "  const Status over;\n", "--async"),
    Mutation("only rank 0 takes out a flight that gives its place away", "src/session/async_flushing.cpp",
             "    if (run_.rank != 0) queue_.remove(waiting.uuid);\n", "", "--async"),
    Mutation("a part is marked before it is done, by a thread", "src/prefix/flush_plan.cpp",
             "  CAIRN_TRY(stage(site, plan, record, cached));\n"
             "  return DoneMarkers(site.files, plan, record.dataset.ranks).mark(record.rank);",
             "  CAIRN_TRY(DoneMarkers(site.files, plan, record.dataset.ranks).mark(record.rank));\n"
             "  return stage(site, plan, record, cached);", "--async"),
    Mutation("a process climbs without the sibling's marker", "src/prefix/flush_plan.cpp",
             "if (!both) return false;", "(void)both;", "--async"),
    Mutation("a copy that is given up leaves its staged files", "src/session/async_flushing.cpp",
             "  CAIRN_TRY(agree(comm, unstage_rank(run_.files, site_->folder, flight.part->record())));\n",
             "", "--async"),
    # what is lost
    Mutation("what only a node has that is not there is reported as lost", "src/recovery/restore.cpp",
             "return may_be_elsewhere != 0 ?", "return may_be_elsewhere > 1 ?", "--async"),
    Mutation("a loss is reported again and again", "src/session/losses.cpp",
             "std::exchange(unreported_, {})", "unreported_", "--async"),
    # a drain
    Mutation("a drain leaves the publication to others", "src/scavenge/drain.cpp",
             "if (!is_published && may_be_whole)", "if (false && may_be_whole)", "--async"),
    Mutation("a drain copies for a plan that a later owner has", "src/scavenge/drain.cpp",
             "return flush.folder != folder.pending(flush.epoch, flush.plan.info);",
             "return flush.folder.empty();", "--async"),
    Mutation("a drain takes only one part of a node", "src/scavenge/drain.cpp",
             "      if (progress_) progress_({moved_bytes_, std::max(moved_bytes_, all_bytes_)});\n",
             "      break;\n", test="scavenge/scavenge_test Drain.*"),
    # rbIO
    Mutation("rbIO: a marker is made before the data are synced", "src/rbio/write_part.cpp",
             "  CAIRN_TRY(file->sync());\n", "", "--rbio"),
    Mutation("rbIO: a marker is not synced", "src/rbio/series_directory.cpp",
             "encode(DoneMarker{static_cast<std::uint32_t>(writers)}), true);",
             "encode(DoneMarker{static_cast<std::uint32_t>(writers)}), false);", "--rbio"),
    Mutation("rbIO: one marker is enough", "src/rbio/series_directory.cpp",
             "return marked >= writers;", "return marked >= std::min(writers, 1);", "--rbio"),
    Mutation("rbIO: all writers leave the marker of the first", "src/rbio/write_part.cpp",
             "series.mark_done(attempt, step, task.writer, task.writers)",
             "series.mark_done(attempt, step, 0, task.writers)", "--rbio"),
    Mutation("rbIO: a marker of another step is accepted", "src/rbio/series_directory.cpp",
             "CAIRN_ASSIGN(const std::vector<std::string> names, files_.list(folder));\n  const auto marked",
             "CAIRN_ASSIGN(std::vector<std::string> names, files_.list(folder));\n"
             "  CAIRN_ASSIGN(const std::vector<std::string> others, files_.list(work_path()));\n"
             "  for (const std::string& other : others)\n"
             "    if (const auto there = files_.list(work_path() + \"/\" + other))\n"
             "      names.insert(names.end(), there->begin(), there->end());\n  const auto marked", "--rbio"),
    Mutation("rbIO: the next open needs one marker only", "src/rbio/series_directory.cpp",
             "const int writers = static_cast<int>(done->writers);", "const int writers = 1;", "--rbio"),
    Mutation("rbIO: a writer publishes without the claim", "src/rbio/series_directory.cpp",
             "  if (!is_claimed) return Publication::by_others;\n", "  (void)is_claimed;\n", "--rbio"),
    Mutation("rbIO: a published name is not synced", "src/rbio/series_directory.cpp",
             "  CAIRN_TRY(files_.sync_folder(path_));\n  CAIRN_TRY(files_.sync_folder(work_path()));\n", "", "--rbio"),
    Mutation("rbIO: a step is removed before its successor is durable", "src/rbio/series_directory.cpp",
             "    CAIRN_TRY(files_.sync_folder(work_path()));  // else", "    // else", "--rbio"),
    Mutation("rbIO: the directory of the series is not durable", "src/rbio/series_directory.cpp",
             "return names.size() == 1 ? sync_name_of", "return names.empty() ? sync_name_of", "--rbio"),
    Mutation("rbIO: a buffer is free before it is written", "src/rbio/step_writer.cpp",
             "  auto written = write(job);\n", "  job.buffer->is_used = false;\n  auto written = write(job);\n", "--rbio"),
    Mutation("rbIO: a step is written before its data are there", "src/rbio/series.cpp",
             "  if (job)\n    data_.add(std::move(requests)", "  if (job) hand_to_writer(job);\n  if (job)\n"
             "    data_.add(std::move(requests)", "--rbio"),
    Mutation("rbIO: ranks do not agree on the outcome", "src/rbio/series.cpp",
             "  CAIRN_TRY(agree(comm, std::move(mine)));\n  const auto best", "  CAIRN_TRY(std::move(mine));\n"
             "  const auto best", "--rbio"),
    Mutation("rbIO: steps are settled as soon as the own group is done", "src/rbio/series.cpp",
             "comm.allreduce(done_and_failed, Reduce::min);", "", "--rbio"),
    Mutation("rbIO: checksums are not compared", "src/rbio/part_file.cpp",
             "if (crc32c(content) != piece.checksums[block])", "if (piece.checksums.size() <= block)", "--rbio"),
    # programs that know nothing of Cairn
    Mutation("wrapped: one look is enough", "src/agreement/step_agreement.cpp",
             "changed ? Look::undecided : std::min(before.look, now.look)",
             "changed && before.look == now.look ? Look::undecided : now.look", "--wrapped"),
    Mutation("wrapped: a file that is opened again does not withdraw its step", "src/agreement/step_agreement.cpp",
             "if (was_provisional && !verdict) news", "if (was_provisional && !verdict && late != none) news", "--wrapped"),
    Mutation("wrapped: the first step is provisional before its writers have passed it", "src/agreement/step_tracker.cpp",
             "work->shapes == usual_ : usual_.empty()", "usual_.empty() || work->shapes == usual_ : usual_.empty()",
             "--wrapped"),
    Mutation("wrapped: a provisional step evicts a certain one", "src/wrapped/wrapped_job.cpp",
             "constexpr int at_least = 2;", "constexpr int at_least = 1;", "--wrapped"),
    Mutation("wrapped: a file that stays in its plain place is no usual one", "src/agreement/step_tracker.cpp",
             "Loss& loss = add_file(step, shape).loss;", "Loss& loss = (shape.empty() ? add_file(step, shape) : work_at(step)).loss;",
             "--wrapped"),
    Mutation("wrapped: a file that comes late is no usual one", "src/agreement/step_tracker.cpp",
             "if (is_decided(step.number)) usual_.insert(shape);", "if (is_decided(step.number) && shape.empty()) usual_.insert(shape);",
             "--wrapped"),
    Mutation("wrapped: a step that was given up does not show the usual files", "src/agreement/step_tracker.cpp",
             "if (it != steps_.end() && !it->second.shapes.empty())",
             "if (it != steps_.end() && !it->second.shapes.empty() && decision == Decision::certain)", "--wrapped"),
    Mutation("wrapped: each run counts its steps from one", "src/wrapped/wrapped_job.cpp",
             "order_.count_from(count_in(*name).value_or(0));", "order_.count_from(0 * count_in(*name).value_or(0));", "--wrapped"),
    Mutation("wrapped: a step whose file was overwritten becomes a dataset without it", "src/wrapped/wrapped_job.cpp",
             "return incomplete_.contains(step) ||", "return", "--wrapped"),
    Mutation("wrapped: a file that is opened in its plain place begins a new step", "src/wrapped/wrapped_job.cpp",
             "  const Writing file = place_in_step(name, step, empties);", "  const Writing file = place_in_step(name, step, empties || true);",
             "--wrapped"),
    Mutation("wrapped: files that are open are linked", "src/wrapped/wrapped_job.cpp",
             "  if (has_changed(step, names))\n", "  if (names.empty() && has_changed(step, names))\n", "--wrapped"),
    Mutation("wrapped: a late file does not give up its step", "src/agreement/step_agreement.cpp",
             "    news.push_back({late, given_up});\n", "", "--wrapped"),
    Mutation("wrapped: files of steps that were given up stay in the cache", "src/wrapped/wrapped_job.cpp",
             "  for (const std::string& name : forget(step)) moves[name] = step;\n", "  forget(step);\n", "--wrapped"),
    Mutation("wrapped: a restart leaves files of steps that were not finished", "src/wrapped/wrapped_job.cpp",
             "return env_.files.remove_file(place_of(name));\n                  })));",
             "return Status(env_.files.info(place_of(name)).map([](const FileInfo&) {}));\n                  })));",
             "--wrapped"),
    Mutation("rbIO: the thread goes on while the series is closed", "src/rbio/step_writer.cpp",
             "[&] { return shared_->has_ended; });", "[&] { return true; });", "--rbio"),
]


def occurrences(mutation: Mutation, root: Path) -> int:
    path = root / mutation.file
    return path.read_text().count(mutation.old) if path.exists() else 0


def check_texts() -> int:
    stale = [mutation for mutation in MUTATIONS if occurrences(mutation, ROOT) != 1]
    for mutation in stale:
        print(f"{mutation.name}: {mutation.file} has the text {occurrences(mutation, ROOT)} times: "
              f"{mutation.old}")
    return 1 if stale else 0


class Bench:
    """A copy of the checkout, with a build folder."""

    def __init__(self, folder: Path):
        self.tree = folder / "tree"
        self.build = folder / "build"
        shutil.rmtree(self.tree, ignore_errors=True)
        # With new times: an object of an earlier build may be newer than what changed since.
        shutil.copytree(ROOT, self.tree, copy_function=shutil.copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
        launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        # A defect changes one source, and only that is compiled anew.
        self.call("cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja",
                  "-DCAIRN_EXAMPLES=OFF", "-DCAIRN_BATCH=1", *launcher)

    def call(self, *command):
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True, check=False)
        if done.returncode != 0:
            raise SystemExit(done.stdout)

    def find(self, mutation: Mutation, seeds: int) -> Optional[str]:
        """A line of the table: how many seeds it took, and the property; None if not caught."""
        path = self.tree / mutation.file
        original = path.read_text()
        if original.count(mutation.old) != 1:
            raise SystemExit(f"{mutation.name}: {mutation.file} has the text "
                             f"{original.count(mutation.old)} times: {mutation.old}")
        target = mutation.test.split()[0].split("/")[1] if mutation.test else "sim"
        if mutation.test:
            self.call("cmake", "--build", self.build, "--target", target, "--parallel", "2")
            if self.find_by_test(mutation.test):
                raise SystemExit(f"{mutation.name}: {mutation.test} fails without the defect, or has no test")
        path.write_text(original.replace(mutation.old, mutation.new))
        try:
            self.call("cmake", "--build", self.build, "--target", target, "--parallel", "2")
        finally:
            path.write_text(original)
        return self.find_by_test(mutation.test) if mutation.test else self.find_by_seeds(mutation.kind, seeds)

    def find_by_test(self, test: str) -> Optional[str]:
        program, which = test.split()
        try:
            ran = subprocess.run([str(self.build / "src" / program), f"--gtest_filter={which}"], timeout=600,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
        except subprocess.TimeoutExpired:
            return f"- | unit test {which} hangs"
        passes = ran.returncode == 0 and "[  PASSED  ] 0 tests" not in ran.stdout
        return None if passes else f"- | unit test {which}"

    def find_by_seeds(self, kind: str, seeds: int) -> Optional[str]:
        sim = [str(self.build / "tests/sim/sim"), *kind.split()]
        ran = subprocess.run([*sim, "--soak", str(seeds), "--jobs", "2"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             universal_newlines=True, check=False)
        if ran.returncode == 0:
            return None
        seed = re.search(r"--seed (\d+)", ran.stdout).group(1)
        property_ = re.search(r"fails: (?:run \d+: )?(\(.\))", ran.stdout)
        return f"{seed} | {property_.group(1) if property_ else 'crash or broken message'}"


def main(arguments: List[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=60000, help="at most so many for each")
    parser.add_argument("--build", type=Path, help="folder to build in, kept")
    parser.add_argument("--check", action="store_true", help="only look for the texts")
    parser.add_argument("names", nargs="*", help="only the defects whose names hold one of these")
    chosen = parser.parse_args(arguments)
    if chosen.check:
        return check_texts()
    folder = chosen.build or Path(tempfile.mkdtemp(prefix="cairn-mutations-"))
    bench = Bench(folder)
    missed = 0
    print("| defect | seeds | property |\n|---|---|---|")
    for mutation in MUTATIONS:
        if chosen.names and not any(name in mutation.name for name in chosen.names):
            continue
        caught = bench.find(mutation, chosen.seeds)
        missed += caught is None
        print(f"| {mutation.name} | {caught or f'not within {chosen.seeds} | -'} |", flush=True)
    if not chosen.build:
        shutil.rmtree(folder)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
