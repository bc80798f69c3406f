"""How the PyTorch rivals are timed, as Cermet times itself: replays of captured CUDA graphs over rotated operands, medians."""
import statistics
import time

import torch

MOST_SETS = 8192
GRAPH_SECONDS = 0.002


class Timer:
    """Median seconds of one call over rotated operands."""

    def __init__(self, autotune=False):
        self.seconds, self.autotune = 0.05, autotune  # of one measurement; whether Inductor may tune kernels of its own
        self.beyond_cache = 4 * torch.cuda.get_device_properties(0).L2_cache_size

    def sets_for(self, set_bytes):
        return max(1, min(-(-self.beyond_cache // set_bytes) + 1, MOST_SETS))

    def best(self, variants, sets):
        """The fastest of (title, call): call(i) launches the work on set i and returns its results, which are kept so that they, too, rotate."""
        found, refusal = [], None
        for title, call in variants:
            try:
                found.append((self.time(call, sets), title))
            except Exception as error:  # a variant that cannot do this is left out
                refusal = refusal or error
                torch.cuda.synchronize()
        if not found:
            raise refusal
        seconds, title = min(found)
        return {'seconds': seconds, 'method': f'{title}, best of {len(found)}' if len(found) > 1 else title, 'sets': sets}

    def time(self, call, sets):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                call(0)
            stream.synchronize()
            graph = self.capture(call, sets, sets)
            launches, one = sets, self.replay(graph, stream)
            if one < GRAPH_SECONDS and sets < 4096:
                launches = sets * max(1, min(int(GRAPH_SECONDS / one) + 1, 4096 // sets))
                if launches > sets:
                    graph = self.capture(call, launches, sets)
            self.replay(graph, stream)
            times, begin = [], time.perf_counter()
            while len(times) < 5 or time.perf_counter() - begin < self.seconds:
                times.append(self.replay(graph, stream) / launches)
        return statistics.median(times)

    @staticmethod
    def capture(call, launches, sets):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            kept = [call(i % sets) for i in range(launches)]
        del kept
        return graph

    @staticmethod
    def replay(graph, stream):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        graph.replay()
        start.record(stream)
        graph.replay()
        end.record(stream)
        stream.synchronize()
        return start.elapsed_time(end) * 1e-3

    def compiled(self, function, autotune=False):
        torch._dynamo.reset()
        return torch.compile(function, dynamic=False, mode='max-autotune-no-cudagraphs' if autotune else None)


def random(*shape, dtype=torch.bfloat16):
    """Every element drawn on its own, from the distributions that Cermet's own rows have: codes evenly, real values normally."""
    if dtype == torch.int8:
        return torch.randint(-128, 128, shape, dtype=dtype, device='cuda')
    if dtype == torch.float8_e4m3fn:
        return torch.randn(shape, dtype=torch.bfloat16, device='cuda').to(dtype)
    return torch.randn(shape, dtype=dtype, device='cuda')


def scales(*shape):
    return torch.rand(shape, device='cuda') * 0.019 + 0.001
