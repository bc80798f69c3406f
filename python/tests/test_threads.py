"""Operators and threads."""

import sys
import threading
import time

import numpy as np
from rows import normalized

import cermet


def test_threads_share_an_operator(w):
    norm = cermet.get_op("rms_norm", (w[None], w))
    failures = []

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(50):
            x = random.standard_normal((random.integers(1, 40), 8)).astype(np.float32)
            if not np.allclose(norm(x, w), normalized(x, w), rtol=1e-4):
                failures.append(x.shape)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_python_runs_while_the_library_computes():
    a = np.ones((1500, 1500), np.float32)
    matmul = cermet.get_op("matmul", (a, a))
    seen = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # a thread gives up Python's lock only where it releases it
    try:
        for _ in range(5):
            state = {"begun": False, "done": False}

            def work(state=state):
                state["begun"] = True
                matmul(a, a)
                state["done"] = True

            thread = threading.Thread(target=work)
            thread.start()
            while not state["begun"]:
                time.sleep(0)
            seen.append(state["done"])
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not all(seen)
