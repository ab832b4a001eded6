"""What cannot be written never breaks the benchmark, unless it asks for that."""

import os
import resource
import signal
import time
import unittest
from unittest import mock

from support import Case, contents, python, start, without_time

from benchmarkai import EmitError, _emitter, _sink


class AFileThatCannotBeWritten(Case):
    def test_that_appears_late_gets_every_line(self):
        folder = os.path.join(self.dir, "late")
        file = os.path.join(folder, "metrics")
        emitter = self.emitter(BENCHMARK_AI_FILE=file)
        with self.said() as said:
            emitter.emit({"a": 1}, time=1)
            emitter.emit({"a": 2}, time=2)
            os.mkdir(folder)
            self.assertTrue(emitter.flush())
            emitter.emit({"a": 3}, time=3)
        self.assertEqual([f'{{"a": {i}, "@time": {i}.000000000}}' for i in (1, 2, 3)], self.lines(file))
        self.assertEqual(1, said.getvalue().count("what is emitted waits"), said.getvalue())
        self.assertEqual(0, emitter.close())

    def test_is_tried_again_by_later_calls(self):
        folder = os.path.join(self.dir, "late")
        emitter = self.emitter(BENCHMARK_AI_FILE=os.path.join(folder, "metrics"))
        with self.said():
            emitter.emit({"a": 1}, time=1)
            os.mkdir(folder)
            deadline = time.monotonic() + 20
            while not os.path.exists(os.path.join(folder, "metrics")) and time.monotonic() < deadline:
                emitter.emit({"a": 1}, time=1)
        self.assertEqual({'{"a": 1, "@time": 1.000000000}'}, set(self.lines(os.path.join(folder, "metrics"))))

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_because_the_disk_is_full_is_counted_and_said(self):
        emitter = self.emitter(BENCHMARK_AI_FILE="/dev/full")
        with self.said() as said:
            for i in range(3):
                emitter.emit({"a": i})
            self.assertEqual(3, emitter.close(0))
        self.assertIn("3 of 3 dropped: [Errno 28] No space left on device", said.getvalue())

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_is_said_at_exit(self):
        done = python("from benchmarkai import emit; emit({'a': 1}); print('done')", BENCHMARK_AI_FILE="/dev/full")
        self.assertEqual(("done\n", 0), (done.stdout, done.returncode))
        self.assertIn("1 of 1 dropped", done.stderr)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_raises_where_that_is_asked_for(self):
        emitter = self.emitter(BENCHMARK_AI_FILE="/dev/full", BENCHMARK_AI_STRICT="1")
        with self.said() as said:
            for _ in range(2):
                with self.assertRaisesRegex(EmitError, "No space left on device"):
                    emitter.emit({"a": 1})
            self.assertEqual(0, emitter.close())
        self.assertEqual("", said.getvalue())

    def test_keeps_a_few_megabytes_and_no_more(self):
        emitter = self.emitter(BENCHMARK_AI_FILE=os.path.join(self.dir, "none", "metrics"))
        with self.said() as said, mock.patch.object(_emitter, "_MOST", 1000):
            for i in range(1000):
                emitter.emit({"a": i}, time=1)
            self.assertLess(emitter._size, 1001)
            self.assertEqual(1000, emitter.close(0))
        self.assertIn("1000 of 1000 dropped", said.getvalue())

    def test_writes_a_line_that_the_disk_cut_once_more(self):
        # A limit of the process's file size cuts a write as a full disk does.
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, before)
        emitter = self.emitter(BENCHMARK_AI_FILE=self.file)
        with self.said():
            for size, i in ((45, 0), (45, 1), (before[0], 2)):
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
                emitter.emit({"a": i}, time=1)
            self.assertTrue(emitter.flush())
        line = '{"a": %d, "@time": 1.000000000}'
        self.assertEqual([line % 0, (line % 1)[:14], line % 1, line % 2], self.lines())

    def test_ends_a_line_that_the_disk_cut_also_where_that_fails_twice(self):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, before)
        emitter = self.emitter(BENCHMARK_AI_FILE=self.file)
        line = '{"a": %d, "@time": 1.000000000}'
        with self.said():
            resource.setrlimit(resource.RLIMIT_FSIZE, (45, before[1]))
            for i in range(2):
                emitter.emit({"a": i}, time=1)
            for _ in range(2):
                self.assertFalse(emitter.flush(0))
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            self.assertTrue(emitter.flush())
        self.assertEqual([line % 0, (line % 1)[:14], line % 1], self.lines())

    def test_does_not_write_a_line_twice_that_lacks_but_its_end(self):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, before)
        emitter = self.emitter(BENCHMARK_AI_FILE=self.file)
        line = '{"a": %d, "@time": 1.000000000}'
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(line % 0), before[1]))
        emitter.emit({"a": 0}, time=1)
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        emitter.emit({"a": 1}, time=1)
        self.assertEqual([line % 0, line % 1], self.lines())

    def test_that_ends_in_a_line_without_an_end_has_it_ended_first(self):
        for before, want in (("", ""), ('{"a": 1', '{"a": 1\n'), ('{"a": 1}\n', '{"a": 1}\n'), ("released\0", "released\0")):
            with open(self.file, "w", newline="") as file:
                file.write(before)
            emitter = self.emitter(BENCHMARK_AI_FILE=self.file)
            emitter.emit({"a": 2}, time=1)
            emitter.emit({"a": 3}, time=1)
            self.assertEqual(0, emitter.close())
            with open(self.file, newline="") as file:
                self.assertEqual(want + '{"a": 2, "@time": 1.000000000}\n{"a": 3, "@time": 1.000000000}\n', file.read())

    def test_is_opened_anew_where_somebody_closed_it(self):
        emitter = self.emitter(BENCHMARK_AI_FILE=self.file)
        emitter.emit({"a": 1}, time=1)
        os.close(emitter._sink._fd)
        with self.said():
            emitter.emit({"a": 2}, time=1)
            self.assertTrue(emitter.flush())
        self.assertEqual(2, len(self.lines()))


class AFifo(Case):
    def emitter(self, **environ):
        return super().emitter(BENCHMARK_AI="fifo", BENCHMARK_AI_FIFO_FILEPATH=self.fifo, **environ)

    def test_without_a_reader_keeps_the_benchmark_waiting_once(self):
        os.mkfifo(self.fifo)
        slept = []
        emitter = self.emitter(BENCHMARK_AI_FIFO_MAX_WAIT_TIME="1")
        with self.said() as said, mock.patch.object(_sink, "_sleep", slept.append):
            for i in range(10):
                emitter.emit({"a": i})
            self.assertEqual(10, emitter.close(0))
        self.assertAlmostEqual(1, sum(slept), delta=0.1)
        self.assertIn("10 of 10 dropped", said.getvalue())

    def test_with_a_reader_that_does_not_read_keeps_the_benchmark_waiting_once(self):
        self.reader()
        emitter = self.emitter()
        begin = time.monotonic()
        with self.said() as said, mock.patch.object(_sink.File, "block", 0.05):
            for i in range(10000):
                emitter.emit({"a": i})
            dropped = emitter.close(0)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertGreater(dropped, 1000)
        self.assertIn(f"{dropped} of 10000 dropped", said.getvalue())

    def test_whose_reader_reads_again_gets_every_line_in_order(self):
        reader = self.reader()
        emitter = self.emitter()
        read = b""
        with self.said(), mock.patch.object(_sink.File, "block", 0.01):
            for i in range(10000):
                emitter.emit({"a": i})
            while not emitter.flush(0):
                read += os.read(reader, 1 << 20)
            read += os.read(reader, 1 << 20)
        self.assertEqual([f'{{"a": {i}}}' for i in range(10000)], read.decode().splitlines())

    def test_whose_reader_goes_and_comes_again_gets_whole_lines(self):
        os.mkfifo(self.fifo)
        reader = os.open(self.fifo, os.O_RDONLY | os.O_NONBLOCK)
        emitter = self.emitter()
        with self.said():
            emitter.emit({"a": 1})
            os.close(reader)
            emitter.emit({"a": 2})
            reader = os.open(self.fifo, os.O_RDONLY | os.O_NONBLOCK)
            self.addCleanup(os.close, reader)
            self.assertTrue(emitter.flush())
        self.assertEqual(b'{"a": 2}\n', os.read(reader, 4096))


class Several(Case):
    def numbered(self, writers, each, lines):
        nexts = {}
        for line in lines:
            ((name, n),) = eval(without_time(line)).items()
            self.assertEqual(nexts.get(name, 0), n, line)
            nexts[name] = n + 1
        self.assertEqual({f"w{w}": each for w in range(writers)}, nexts)

    def test_threads_write_whole_lines_in_the_order_of_each(self):
        emitters = [self.emitter(BENCHMARK_AI_FILE=self.file) for _ in range(2)]

        def write(w):
            for i in range(500):
                emitters[w % 2].emit({f"w{w}": i})

        start(*[lambda w=w: write(w) for w in range(8)])
        self.numbered(8, 500, self.lines())

    def test_processes_that_fork_and_thread_write_whole_lines_in_the_order_of_each(self):
        done = python(
            """
import os, threading
from benchmarkai import emit
def write(w):
    for i in range(300): emit({f"w{w}": i})
threads = [threading.Thread(target=write, args=(w,)) for w in range(2)]
for t in threads: t.start()
pids = []
for w in range(2, 6):
    pid = os.fork()
    if pid == 0:
        write(w)
        os._exit(0)
    pids.append(pid)
for t in threads: t.join()
for pid in pids: assert os.waitpid(pid, 0)[1] == 0
""",
            BENCHMARK_AI_FILE=self.file,
        )
        self.assertEqual(("", 0), (done.stderr if "DeprecationWarning" not in done.stderr else "", done.returncode))
        self.numbered(6, 300, self.lines())

    def test_processes_that_fork_write_what_waited_once(self):
        folder = os.path.join(self.dir, "late")
        done = python(
            f"""
import os
from benchmarkai import emit, flush
emit({{"a": 1}}, time=1)
pid = os.fork()
os.makedirs({folder!r}, exist_ok=True)
if pid == 0:
    emit({{"a": 2}}, time=1)
    assert flush()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
""",
            BENCHMARK_AI_FILE=os.path.join(folder, "metrics"),
        )
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual([2, 1], [eval(line)["a"] for line in self.lines(os.path.join(folder, "metrics"))])

    def test_a_signal_handler_that_emits_loses_nothing(self):
        emitter = self.emitter(BENCHMARK_AI_FILE=self.file)
        count = [0]

        def handler(*_):
            emitter.emit({"w1": count[0]})
            count[0] += 1
            signal.setitimer(signal.ITIMER_REAL, 0.0005)

        before = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        for i in range(5000):
            emitter.emit({"w0": i})
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.assertTrue(emitter.flush())
        seen = {"w0": [], "w1": []}
        for line in self.lines():
            ((name, n),) = eval(without_time(line)).items()
            seen[name].append(n)
        self.assertEqual({"w0": list(range(5000)), "w1": list(range(count[0]))}, seen)

    def test_what_was_emitted_is_there_when_the_process_is_killed(self):
        done = python("import os; from benchmarkai import emit; emit({'a': 1}); os.kill(os.getpid(), 9)", BENCHMARK_AI_FILE=self.file)
        self.assertEqual(-9, done.returncode)
        self.assertEqual('{"a": 1}', without_time(contents(self.file).rstrip("\n")))


if __name__ == "__main__":
    unittest.main()
