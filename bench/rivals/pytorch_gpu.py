"""PyTorch on a GPU with its best settings, a rival of bench/gpu_suite.py: reads rows from standard input, a line each, and answers each with
a line of JSON.

usage: python3 bench/rivals/pytorch_gpu.py [--autotune] < rows
A line starts with the seconds to spend: "0.05 product bf16 16 4096 4096". An answer has seconds, method and sets, or the error with which PyTorch refused. The first line is {"version": ...}.
"""
import argparse
import json
import os
import sys

import torch
from torch_attention import decode, encoder, prefill
from torch_conv import conv
from torch_memory import memory
from torch_models import step
from torch_products import grouped, mixture, product
from torch_timer import Timer

KINDS = {'memory': memory, 'product': product, 'grouped': grouped, 'mixture': mixture, 'prefill': prefill, 'encoder': encoder, 'decode': decode, 'step': step,
         'conv': conv}


def answer(timer, line):
    seconds, kind, *words = line.split()
    timer.seconds = float(seconds)
    try:
        with torch.no_grad():
            return KINDS[kind](timer, *words)
    except Exception as error:  # a rival that cannot do something is a result, too
        return {'error': (str(error).strip().splitlines() or [type(error).__name__])[0][:200]}
    finally:
        torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--autotune', action='store_true', help='let Inductor tune kernels of its own, too')
    args = parser.parse_args()
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)  # whatever a library prints does not mix with the answers
    timer = Timer(args.autotune)
    print(json.dumps({'version': f'PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}'}), file=answers, flush=True)
    for line in sys.stdin:
        found = answer(timer, line)
        print(line.strip(), found, file=sys.stderr, flush=True)
        print(json.dumps(found), file=answers, flush=True)


if __name__ == '__main__':
    main()
